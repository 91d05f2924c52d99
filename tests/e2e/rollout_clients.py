"""Clients that call without a pause, each kind in a thread of its own, and count the calls that they lose:

    rollout_clients.py ADDRESSES BALANCER

ADDRESSES: a gRPC target of all servers; BALANCER: host:port of one that forwards connections. Prints "ready" when every kind
has been answered, ends when its input ends, and then prints {kind: {"answered": N, "lost": {why: N}}}.

test_rollout.py runs it as a process of its own, because the client and the tests' stubs have the same name.
"""

import asyncio
import collections
import json
import sys
import threading
import time

import grpc
import numpy as np

import quantd
from quantd import messages

PATH = f"/{messages.SERVICE}/Quantize"
X = np.arange(8, dtype=np.float32)
LARGE = np.arange(2_000_000, dtype=np.float32)
ITEMS_OF_A_STREAM = 8
PAUSE = 0.004
ENDED = threading.Event()
# No service config: so no health checks, and no retries of calls that a server has answered; and nothing is shared with
# another channel. gRPC's own retries stay on ("grpc.enable_retries"): if a call takes a connection just before its GOAWAY
# arrives, it is never sent, and without these retries the client ends it as UNAVAILABLE. No server can prevent that; gRPC's
# own server loses as many calls that way.
PLAIN = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
]  # fmt: skip


def request(x):
    tensor = messages.Tensor(data_type=1, shape=x.shape, raw_data=x.tobytes())
    scale = messages.Tensor(data_type=1, raw_data=np.float32(1e5).tobytes())
    return messages.QuantizeRequest(x=tensor, scale=scale).SerializeToString()


class Count:
    """The results of one kind's calls."""

    def __init__(self):
        self.answered, self.lost = 0, collections.Counter()

    def note(self, error=None):
        if error is None:
            self.answered += 1
        elif isinstance(error, grpc.RpcError):
            self.lost[f"{error.code().name}: {error.details()}"] += 1
        else:
            self.lost[f"{type(error).__name__}: {error}"] += 1


def repeat(count, call, pause=PAUSE):
    while not ENDED.is_set():
        try:
            call()
        except Exception as error:
            count.note(error)
        else:
            count.note()
        time.sleep(pause)


def default_client(count, addresses, _):
    with quantd.Client(addresses) as client:
        repeat(count, lambda: client.quantize(X, 1e5, timeout=30))


def async_client(count, addresses, _):
    async def run():
        async with quantd.AsyncClient(addresses) as client:
            while not ENDED.is_set():
                try:
                    await client.quantize(X, 1e5, timeout=30)
                except Exception as error:
                    count.note(error)
                else:
                    count.note()
                await asyncio.sleep(PAUSE)

    asyncio.run(run())


def plain_client(count, _, balancer, x=X):
    data = request(x)
    with grpc.insecure_channel(balancer, PLAIN) as channel:
        call = channel.unary_unary(PATH)
        repeat(count, lambda: call(data, timeout=60))


def a_connection_a_call(count, _, balancer):
    data = request(X)

    def call():
        with grpc.insecure_channel(balancer, PLAIN) as channel:
            channel.unary_unary(PATH)(data, timeout=30)

    repeat(count, call, 5 * PAUSE)


def long_calls(count, addresses, balancer):
    plain_client(count, addresses, balancer, LARGE)


def one_stream(count, addresses, _):
    """One Stream through all restarts; every item of it counts as a call."""
    with quantd.Client(addresses) as client, client.stream(max_in_flight=ITEMS_OF_A_STREAM) as stream:
        while not ENDED.is_set():
            futures = [stream.quantize(X, 1e5) for _ in range(ITEMS_OF_A_STREAM)]
            for future in futures:
                count.note(future.exception())
            time.sleep(PAUSE)


KINDS = {
    "quantd.Client": default_client,
    "quantd.AsyncClient": async_client,
    "quantd.Client, a Stream": one_stream,
    "plain gRPC": plain_client,
    "plain gRPC, 8 MB a call": long_calls,
    "plain gRPC, a connection a call": a_connection_a_call,
}


def main(addresses, balancer):
    counts = {kind: Count() for kind in KINDS}

    def run(kind):
        try:
            KINDS[kind](counts[kind], addresses, balancer)
        except Exception as error:
            counts[kind].note(error)

    threads = [threading.Thread(target=run, args=(kind,)) for kind in KINDS]
    for thread in threads:
        thread.start()
    while any(count.answered + sum(count.lost.values()) == 0 for count in counts.values()):
        time.sleep(0.05)
    print("ready", flush=True)
    sys.stdin.read()
    ENDED.set()
    for thread in threads:
        thread.join()
    print(json.dumps({kind: {"answered": count.answered, "lost": count.lost} for kind, count in counts.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
