"""Clients that truncate, grow, change and remove files while the server works on them, leave them behind, or bring more than allowed."""

import os
import threading
import time

import grpc
import numpy as np
import pytest
from shared import reference, shared_tensor
from support import UINT8, pb, quantize, rounds, tensor

CODE = grpc.StatusCode
MIB = 1 << 20


@pytest.fixture(scope="module")
def server_flags(folder):
    return (folder.flag,)


def code_of(call, request):
    try:
        call(request, timeout=30)
        return CODE.OK
    except grpc.RpcError as error:
        return error.code()


def works(server):
    assert server.stub.Quantize(quantize([1.0]), timeout=10).y.raw_data == b"\2"


def requests_of(size, output="y"):
    """Each operation, with x of `size` bytes in region x and y in region output: one region each for calls at the same time."""
    x, y = shared_tensor("x", [size // 4], size), reference(output, size)
    codes = shared_tensor("x", [size // 4], size // 4, data_type=UINT8)
    return [
        ("Quantize", pb.QuantizeRequest(x=x, scale=tensor(0.5), output=y)),
        ("Quantize", pb.QuantizeRequest(x=x, scale=tensor(0.5))),
        ("DynamicQuantize", pb.DynamicQuantizeRequest(x=x, output=y, report_error=True)),
        ("DynamicQuantize", pb.DynamicQuantizeRequest(x=x, axis=0, block_size=32)),
        ("Dequantize", pb.DequantizeRequest(x=codes, scale=tensor(0.5), output=y)),
    ]


@pytest.mark.parametrize("victim", ["x", "y"])
def test_files_that_are_cut_and_grow_during_calls(server, folder, victim):
    """Every call ends with an answer or a clear error, and only that call."""
    size = 8 * MIB
    for name in "xy":
        folder.file(name, size=size)
    over = threading.Event()

    def cut():
        random = np.random.default_rng(3)
        file = os.open(folder.path / victim, os.O_RDWR)
        while not over.is_set():
            os.truncate(file, int(random.integers(0, size)))
            time.sleep(float(random.uniform(0, 0.002)))
            os.posix_fallocate(file, 0, size)
            time.sleep(float(random.uniform(0, 0.006)))
        os.close(file)

    thread = threading.Thread(target=cut)
    thread.start()
    seen, texts = {}, set()
    try:
        for _ in rounds(3, lambda: CODE.OK in seen and any("cut short" in text for text in texts)):
            for method, request in requests_of(size):
                try:
                    getattr(server.stub, method)(request, timeout=30)
                    code = CODE.OK
                except grpc.RpcError as error:
                    code = error.code()
                    texts.add(error.details().split("'")[-1])
                seen[code] = seen.get(code, 0) + 1
            works(server)
    finally:
        over.set()
        thread.join()
    print(victim, seen, texts)
    assert set(seen) <= {CODE.OK, CODE.FAILED_PRECONDITION, CODE.INVALID_ARGUMENT}
    assert seen[CODE.OK] > 0 and any("cut short" in text for text in texts)
    folder.file(victim, size=size)
    for method, request in requests_of(size):
        assert code_of(getattr(server.stub, method), request) == CODE.OK


def test_bytes_that_change_during_calls(server, folder):
    """Scales that become zero or NaN after the checks, tensors that contain NaN when they are read the second time."""
    size = MIB
    folder.file("x", np.ones(size // 4, np.float32).tobytes())
    folder.file("y", size=size)
    folder.file("scale", np.ones(size // 4, np.float32).tobytes())
    over = threading.Event()

    def change():
        random = np.random.default_rng(5)
        x = np.memmap(folder.path / "x", np.float32)
        scale = np.memmap(folder.path / "scale", np.float32)
        values = np.float32([1, 0, -0.0, np.nan, np.inf, -np.inf, 1e-45, 3e38, -1, 1e-30])
        while not over.is_set():
            x[random.integers(0, x.size, 1000)] = random.choice(values)
            scale[random.integers(0, scale.size, 100)] = random.choice(values)
            x[:] = 1
            scale[:] = 1

    thread = threading.Thread(target=change)
    thread.start()
    seen = {}
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for method, request in requests_of(size):
                if method != "DynamicQuantize":
                    request.scale.CopyFrom(shared_tensor("scale", [size // 4], size))
                    request.axis = 0
                code = code_of(getattr(server.stub, method), request)
                seen[code] = seen.get(code, 0) + 1
    finally:
        over.set()
        thread.join()
    assert set(seen) <= {CODE.OK, CODE.INVALID_ARGUMENT} and seen[CODE.OK] > 0, seen
    works(server)
