"""Honest clients, more than the server has room for, in a process of their own: if they were threads of the test, a bystander's calls would wait
for Python. Each makes one call after the other.

    with Crowd(server.address, clients=60, calls=4, elements=1 << 21) as crowd: ...
    crowd.codes, crowd.seconds

Run as a program: crowd.py ADDRESS CLIENTS CALLS ELEMENTS; prints both as JSON."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import grpc
import numpy as np

from support import SERVICE, pb, tensor


class Crowd:
    def __init__(self, address, clients, calls, elements):
        self.command = [sys.executable, str(Path(__file__).resolve()), address, str(clients), str(calls), str(elements)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        printed = self.process.communicate(timeout=300)[0]
        assert self.process.returncode == 0, "the crowd failed"
        result = json.loads(printed)
        self.codes = [grpc.StatusCode[name] for name in result["codes"]]
        self.seconds = result["seconds"]  # of the answered calls


def main(address, clients, calls, elements):
    x = np.linspace(-1, 1, int(elements), dtype=np.float32)
    request = pb.DynamicQuantizeRequest(x=tensor(x)).SerializeToString()
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    codes, seconds, without_advice = [], [], []

    def client():
        with grpc.insecure_channel(address, options) as channel:
            call = channel.unary_unary(f"/{SERVICE}/DynamicQuantize")
            for _ in range(int(calls)):
                begin = time.monotonic()
                error = call.future(request, timeout=60).exception()
                codes.append(error.code().name if error else "OK")
                if error is None:
                    seconds.append(time.monotonic() - begin)
                elif b"RetryInfo" not in dict(error.trailing_metadata()).get("grpc-status-details-bin", b""):
                    without_advice.append(f"{error.code().name}: {error.details()}")

    threads = [threading.Thread(target=client) for _ in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not without_advice, without_advice[:3]
    print(json.dumps({"codes": codes, "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
