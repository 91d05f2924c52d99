"""Tensors in shared memory: the same bytes as in a message, and errors for wrong references."""

import itertools
import os
import socket
import subprocess

import grpc
import numpy as np
import pytest
from shared import reference, shared_quantize, shared_tensor
from support import ROOT, FLOAT, UINT8, pb, quantize, tensor, tensor_pb2
from test_bad_input import details_of

CODE = grpc.StatusCode
INT8, UINT16, INT32, FLOAT16, FP8, INT4, FP4, UINT2 = 3, 4, 6, 10, 17, 22, 23, 25
BITS = {FLOAT: 32, UINT8: 8, INT8: 8, UINT16: 16, INT32: 32, FLOAT16: 16, FP8: 8, INT4: 4, FP4: 4, UINT2: 2}
RANDOM = np.random.default_rng(7)


@pytest.fixture(scope="module")
def server_flags(folder):
    return (folder.flag,)


def size_of(data_type, elements):
    return (elements * BITS[data_type] + 7) // 8


def refused(call, request, code, *words):
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=10)
    assert caught.value.code() == code, caught.value.details()
    bad, info = details_of(caught.value)
    for word in words:
        assert str(word) in caught.value.details(), caught.value.details()
    return bad.field_violations[0].field if bad.field_violations else "", info.reason


def move(folder, request, offset, y_size):
    """The request with x in shared memory, and y to be written there."""
    moved = type(request)()
    moved.CopyFrom(request)
    for name in ("x", "scale", "zero_point", "tensor_scale", "ranges"):
        if name not in moved.DESCRIPTOR.fields_by_name or not moved.HasField(name):
            continue
        field = getattr(moved, name)
        raw = field.raw_data
        folder.file(name, raw, offset=offset)
        field.shared_memory.CopyFrom(reference(name, len(raw), offset))
    folder.file("y", b"\xa5" * (y_size + 2 * offset + 64))
    moved.output.CopyFrom(reference("y", y_size + 16, offset))
    return moved


def same(folder, server, request, offset):
    """Compares the answer in a message with the one in shared memory, and checks the bytes around that."""
    name = type(request).__name__.removesuffix("Request")
    call = getattr(server.stub, name)
    want = call(request, timeout=60)
    raw = want.y.raw_data
    got = call(move(folder, request, offset, len(raw)), timeout=60)
    assert got.y.shared_memory == reference("y", len(raw), offset)
    assert got.y.shape == want.y.shape and got.y.data_type == want.y.data_type and not got.y.raw_data
    around = folder.read("y")
    assert around[offset : offset + len(raw)] == raw
    assert around[:offset] == b"\xa5" * offset and set(around[offset + len(raw) :]) <= {0xA5}
    want.y.Clear(), got.y.Clear()
    assert got == want


def floats(shape, data_type=FLOAT):
    values = RANDOM.standard_normal(shape).astype(np.float32)
    raw = values.astype(np.float16).tobytes() if data_type == FLOAT16 else values.tobytes()
    if data_type == INT32:
        raw = RANDOM.integers(-1000, 1000, shape, np.int32).tobytes()
    return tensor_pb2.Tensor(data_type=data_type, shape=shape, raw_data=raw)


def quantize_requests():
    for output in (UINT8, INT8, UINT16, FP8, INT4, FP4, UINT2):
        for x in (floats([37, 53]), floats([300, 1001], FLOAT16), floats([3, 5], INT32)):
            blocks = [x.shape[0], -(-x.shape[1] // 8)]
            for fields, shape in (({}, []), ({"axis": 1}, [x.shape[1]]), ({"axis": 1, "block_size": 8}, blocks)):
                yield pb.QuantizeRequest(x=x, scale=tensor(RANDOM.uniform(0.01, 0.1, shape)), output_type=output, **fields)


def dequantize_requests():
    for data_type in (UINT8, INT8, UINT16, FP8, INT4, FP4, UINT2):
        zero = None if data_type in (FP8, FP4) else tensor_pb2.Tensor(data_type=data_type, raw_data=b"\1" * size_of(data_type, 1))
        for shape, output in itertools.product(([37, 53], [100, 4001]), (FLOAT, FLOAT16)):
            x = tensor_pb2.Tensor(data_type=data_type, shape=shape, raw_data=RANDOM.bytes(size_of(data_type, shape[0] * shape[1])))
            yield pb.DequantizeRequest(x=x, scale=tensor(RANDOM.uniform(0.01, 0.1, shape[1])), output_type=output, axis=1)
            yield pb.DequantizeRequest(x=x, scale=tensor(0.3), zero_point=zero, output_type=output)


def dynamic_quantize_requests():
    for output, x in itertools.product((UINT8, INT8, FP8, INT4, FP4, UINT2), (floats([64, 96]), floats([1500, 256], FLOAT16))):
        for fields in ({}, {"axis": 0}, {"axis": 1, "block_size": 32}, {"report_error": True}):
            yield pb.DynamicQuantizeRequest(x=x, output_type=output, **fields)


def embeddings_requests():
    for recipe, x in itertools.product((1, 2, 3, 4), (floats([64, 97]), floats([700, 1001], FLOAT16))):
        for fields in ({}, {"dimensions": 33, "normalize": True}, {} if recipe == 4 else {"report_error": True}):
            width = fields.get("dimensions", x.shape[1])
            ranges = tensor([[-1] * width, [1] * width]) if recipe == 1 else None
            yield pb.QuantizeEmbeddingsRequest(x=x, recipe=recipe, ranges=ranges, **fields)


@pytest.mark.parametrize("offset", [0, 1, 3, 4096])
@pytest.mark.parametrize("requests", [quantize_requests, dequantize_requests, dynamic_quantize_requests, embeddings_requests])
def test_the_same_bytes(server, folder, requests, offset):
    for request in requests():
        same(folder, server, request, offset)


def test_more_than_a_message_can_be(start, folder):
    small = start(folder.flag, "--max_message_bytes=65536", "--memory_budget_bytes=1048576")
    assert "shared_memory" in small.stub.GetServerInfo(pb.GetServerInfoRequest()).extensions
    x = floats([16 << 20])
    folder.file("large", x.raw_data)
    folder.file("large_y", bytes(16 << 20))
    answer = small.stub.Quantize(shared_quantize("large", 16 << 20, "large_y"), timeout=60)
    assert answer.y.shared_memory.byte_size == 16 << 20
    want = np.clip(np.rint(np.frombuffer(x.raw_data, np.float32) / 0.5), 0, 255).astype(np.uint8)
    assert folder.read("large_y") == want.tobytes()
    # An answer in a message must still fit into one.
    refused(small.stub.Quantize, shared_quantize("large", 16 << 20), CODE.RESOURCE_EXHAUSTED)
    for name in ("large", "large_y"):
        os.unlink(folder.path / name)


def test_items_of_a_stream(server, folder):
    folder.file("x", np.float32([1, 2, 3, 4]).tobytes())
    folder.file("y", bytes(64))
    items = [
        pb.StreamRequest(id=1, quantize=shared_quantize(output="y")),
        pb.StreamRequest(id=2, quantize=shared_quantize("missing")),
        pb.StreamRequest(id=3, dynamic_quantize=pb.DynamicQuantizeRequest(x=shared_tensor("x", [4], 16))),
        pb.StreamRequest(id=4, quantize=shared_quantize(offset=2)),
        pb.StreamRequest(id=5, quantize=quantize([1.0])),
    ]
    answers = {answer.id: answer for answer in server.stub.Stream(iter(items), timeout=10)}
    assert answers[1].quantize.y.shared_memory == reference("y", 4) and folder.read("y", 0, 4) == bytes([2, 4, 6, 8])
    assert answers[2].error.code == CODE.NOT_FOUND.value[0] and answers[2].error.field_violations[0].field == "x.shared_memory.region"
    assert answers[3].dynamic_quantize.y.raw_data == bytes([64, 127, 191, 255])
    assert answers[4].error.code == CODE.INVALID_ARGUMENT.value[0]
    assert answers[5].quantize.y.raw_data == b"\2"


def test_output_over_an_input(server, folder):
    """Refused, also under different names: kernels read in pieces, and DynamicQuantize reads twice. tests/server/regions tests which
    places overlap."""
    folder.file("x", np.float32([1, 2, 3, 4]).tobytes() + bytes(84))
    os.link(folder.path / "x", folder.path / "twin")
    request = shared_quantize(output="twin")
    request.output.offset = 15
    dynamic = pb.DynamicQuantizeRequest(x=request.x, output=request.output)
    for call, overlapping in ((server.stub.Quantize, request), (server.stub.DynamicQuantize, dynamic)):
        assert refused(call, overlapping, CODE.INVALID_ARGUMENT, "overlaps", 4, 16)[0] == "output"
    # Room behind y is not part of y.
    request.x.shared_memory.offset, request.output.offset, request.output.byte_size = 20, 16, 60
    server.stub.Quantize(request, timeout=10)
    over_scale = quantize([1.0], output=reference("x", 1))
    over_scale.scale.CopyFrom(shared_tensor("x", [], 4))
    assert refused(server.stub.Quantize, over_scale, CODE.INVALID_ARGUMENT, "scale")[0] == "output"
    os.unlink(folder.path / "twin")


def test_names_that_are_none(server, folder):
    """One of each kind; tests/server/regions has the others."""
    os.symlink("/etc/passwd", folder.path / "passwd")
    socket.socket(socket.AF_UNIX).bind(str(folder.path / "socket"))
    for name in ("", "../x", "x\0"):
        field, _ = refused(server.stub.Quantize, shared_quantize(name), CODE.INVALID_ARGUMENT)
        assert field == "x.shared_memory.region", name
        refused(server.stub.Quantize, quantize([1.0], output=reference(name, 1)), CODE.INVALID_ARGUMENT)
    for name in ("passwd", "socket"):
        refused(server.stub.Quantize, shared_quantize(name), CODE.NOT_FOUND, name, "not a regular file")
    assert refused(server.stub.Quantize, shared_quantize("missing"), CODE.NOT_FOUND, "missing")[0] == "x.shared_memory.region"
    assert "root:" not in server.log()


def test_without_a_directory(start):
    without = start()
    assert "shared_memory" not in without.stub.GetServerInfo(pb.GetServerInfoRequest()).extensions
    field, reason = refused(without.stub.Quantize, shared_quantize(), CODE.UNIMPLEMENTED, "--shared_memory_dir")
    assert (field, reason) == ("x.shared_memory", "NO_SHARED_MEMORY")
    refused(without.stub.Quantize, quantize([1.0], output=reference("y", 1)), CODE.UNIMPLEMENTED, "output")


def test_the_cpp_example(server, folder):
    example = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client" / "cpp" / "client_shared_memory_example"
    done = subprocess.run([str(example), server.address, str(folder.path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "0 -> 0" and lines[1].startswith("0.841471 -> ") and lines[4].endswith("1048576 bytes in region quantd-")
    done = subprocess.run([str(example), server.address, "/no/such"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "NOT_FOUND" in done.stderr
