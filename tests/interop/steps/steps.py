"""The cases of README.md with gRPC's library for Python: steps.py PORT CA|- CASE. Exits with an assertion if something is wrong."""

import sys
import time

import grpc

CHECK, WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
NAME = "größe 測試 ☺ 😀".encode()


def field(number, payload):
    """A field of protobuf, of at most 127 bytes."""
    return bytes([number << 3 | 2, len(payload)]) + payload


def connect(port, ca):
    options = [("grpc.ssl_target_name_override", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
    if ca == "-":
        return grpc.insecure_channel(f"127.0.0.1:{port}", options)
    with open(ca, "rb") as file:
        return grpc.secure_channel(f"127.0.0.1:{port}", grpc.ssl_channel_credentials(file.read()), options)


def fails(call, code):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, error
        return error.details()
    raise AssertionError(f"not {code}")


def deadline(channel, _):
    began = time.monotonic()
    watch = channel.unary_stream(WATCH)(b"", timeout=0.3)
    next(watch)
    fails(lambda: next(watch), grpc.StatusCode.DEADLINE_EXCEEDED)
    assert time.monotonic() - began >= 0.29


def cancel(channel, _):
    watch = channel.unary_stream(WATCH)(b"")
    next(watch)
    watch.cancel()
    fails(lambda: next(watch), grpc.StatusCode.CANCELLED)
    channel.unary_unary(CHECK)(b"", timeout=20)


def unicode_status(channel, _):
    request = field(1, b"\x08\x01" + field(6, field(1, NAME) + b"\x18\x04"))  # a FLOAT of 4 bytes
    text = fails(lambda: channel.unary_unary("/quantd.v1.QuantizationService/DynamicQuantize")(request), grpc.StatusCode.INVALID_ARGUMENT)
    assert NAME.decode() in text, text


def soak(channel, _):
    check = channel.unary_unary(CHECK)
    for _ in range(10000):
        check(b"", timeout=20)


def channels(_, connect_again):
    for _ in range(1000):
        with connect_again() as channel:
            channel.unary_unary(CHECK)(b"", timeout=20)


def concurrent_large_unary(channel, _):
    """For the interop server: 271,828 bytes get 314,159 in return."""
    payload = b"\x12" + b"\xd4\xcb\x10" + bytes(271828)
    request = b"\x10\xaf\x96\x13\x1a" + b"\xd8\xcb\x10" + payload
    call = channel.unary_unary("/grpc.testing.TestService/UnaryCall")
    for answer in [call.future(request, timeout=100) for _ in range(1000)]:
        assert 314159 < len(answer.result()) < 314200


def main():
    port, ca, case = sys.argv[1:]
    steps = {step.__name__: step for step in (deadline, cancel, unicode_status, soak, channels, concurrent_large_unary)}
    with connect(port, ca) as channel:
        steps[case](channel, lambda: connect(port, ca))


main()
