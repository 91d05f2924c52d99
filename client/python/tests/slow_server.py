"""A server that answers with ones, DynamicQuantize after two seconds: for tests of timeouts, of open calls and of forks, which need no numbers.
Run as a program it listens until it is killed, and prints its address."""

import threading
import time

from quantd import messages
from raw_server import RawServer

SECONDS = 2


def _tensor(x):
    size = len(x.raw_data) // 4
    return messages.Tensor(data_type=2, shape=[size], raw_data=b"\1" * size)


def quantize(request):
    return messages.QuantizeResponse(y=_tensor(request.x))


def dynamic_quantize(request):
    time.sleep(SECONDS)
    scale, zero_point = messages.Tensor(data_type=1, raw_data=bytes(4)), messages.Tensor(data_type=2, raw_data=bytes(1))
    return messages.DynamicQuantizeResponse(y=_tensor(request.x), y_scale=scale, y_zero_point=zero_point)


def _stream(items, context):
    for item in map(messages.StreamRequest.FromString, items):
        kind = item.WhichOneof("request")
        answer = {"quantize": quantize, "dynamic_quantize": dynamic_quantize}[kind](getattr(item, kind))
        yield messages.StreamResponse(id=item.id, **{kind: answer}).SerializeToString()


def start():
    return RawServer(
        Quantize=lambda data, _: quantize(messages.QuantizeRequest.FromString(data)).SerializeToString(),
        DynamicQuantize=lambda data, _: dynamic_quantize(messages.DynamicQuantizeRequest.FromString(data)).SerializeToString(),
        Stream=_stream,
    )


if __name__ == "__main__":
    with start() as server:
        print(server.address, flush=True)
        threading.Event().wait()
