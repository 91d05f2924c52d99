"""Calibrate: the results of many messages and calls are those of one; every error names its field."""

import threading

import grpc
import ml_dtypes
import numpy as np
import pytest
from google.rpc import error_details_pb2, status_pb2

from calibration import calibrated
from shared import Folder, shared_tensor
from support import pb, tensor, tensor_pb2, wait_for

METHODS = {"min_max": 1, "percentile": 2, "entropy": 3, "mse": 4}
TYPES = {"float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "float16": 10, "bfloat16": 16, "float8e4m3fn": 17,
         "float8e5m2": 19, "uint4": 21, "int4": 22, "float4e2m1": 23, "uint2": 25, "int2": 26,
         "float6e2m3": 27, "float6e3m2": 28}
NUMPY = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int32": np.int32, "uint8": np.uint8,
         "int8": np.int8, "uint16": np.uint16, "int16": np.int16}
RNG = np.random.default_rng(12)


def options(method="min_max", output_type="uint8", symmetric=None, axis=None, percentile=0, ignore=False, state=False):
    made = pb.CalibrationOptions(method=METHODS[method], output_type=TYPES[output_type], percentile=percentile, return_state=state)
    if symmetric is not None:
        made.symmetry = 2 if symmetric else 1
    if axis is not None:
        made.axis = axis
    if ignore:
        made.non_finite = 2
    return made


def of(array, kind="float"):
    array = np.asarray(array).astype(NUMPY[kind])
    return tensor_pb2.Tensor(data_type=TYPES[kind], shape=array.shape, raw_data=array.tobytes())


def messages(parts, **fields):
    """One message for each tensor or state, with the options in the first one."""
    for number, part in enumerate(parts):
        message = pb.CalibrateRequest(options=options(**fields)) if number == 0 else pb.CalibrateRequest()
        if isinstance(part, bytes):
            message.state = part
        elif part is not None:
            message.x.CopyFrom(part if isinstance(part, tensor_pb2.Tensor) else of(part))
        yield message


def ask(server, parts, timeout=60, **fields):
    return server.stub.Calibrate(messages(parts, **fields), timeout=timeout)


def floats(t):
    assert t.data_type == TYPES["float"]
    return np.frombuffer(t.raw_data, np.float32).reshape(t.shape)


def refusal(call):
    """(code, field or None, text) of a call that must fail."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    status = status_pb2.Status()
    field = None
    details = dict(raised.value.trailing_metadata() or ()).get("grpc-status-details-bin")
    if details:
        status.ParseFromString(details)
        for detail in status.details:
            if detail.type_url.endswith("BadRequest"):
                bad = error_details_pb2.BadRequest()
                detail.Unpack(bad)
                field = bad.field_violations[0].field
    return raised.value.code(), field, raised.value.details()


def data(kind, axis):
    x = RNG.standard_normal((40, 6, 50)) * np.exp(RNG.uniform(-3, 3, (1, 6, 1)))
    x[:, 2] = np.abs(x[:, 2])
    x[:, 3] = 0
    return (x * 1000).astype(np.int32) if kind == "int32" else x.astype(NUMPY[kind])


# tests/core/calibrate_methods_test.cc has the formulas for random options, values and axes.
@pytest.mark.parametrize("kind, axis", [("float", None), ("bfloat16", 1), ("float16", -2), ("int32", 2)])
@pytest.mark.parametrize("method, output_type, symmetric, percentile", [
    ("min_max", "uint8", None, 0), ("min_max", "float8e4m3fn", None, 0), ("percentile", "int8", True, 99.9), ("percentile", "int4", False, 99),
])
def test_the_answer_is_the_formula(server, kind, axis, method, output_type, symmetric, percentile):
    x = data(kind, axis)
    fields = dict(method=method, output_type=output_type, symmetric=symmetric, axis=axis)
    answer = ask(server, [of(part, kind) for part in np.array_split(x, 5)], percentile=percentile, **fields)
    ranges, scale, zero_point = calibrated(x, percentile=percentile or 99.99, **fields)
    assert floats(answer.range).tobytes() == ranges.tobytes() and list(answer.range.shape) == list(ranges.shape)
    assert floats(answer.scale).tobytes() == scale.tobytes() and list(answer.scale.shape) == list(scale.shape)
    assert (answer.elements, answer.non_finite_elements, answer.state) == (x.size, 0, b"")
    assert answer.HasField("zero_point") == (zero_point is not None)
    if output_type in ("uint8", "int8"):
        assert answer.zero_point.data_type == TYPES[output_type] and list(answer.zero_point.shape) == list(zero_point.shape)
        assert answer.zero_point.raw_data == zero_point.astype(NUMPY[output_type]).tobytes()
    elif output_type == "int4":
        assert len(answer.zero_point.raw_data) == (scale.size + 1) // 2


@pytest.mark.parametrize("output_type, symmetric", [("int8", True), ("uint8", False), ("int4", True)])
def test_mse_is_the_formula(server, output_type, symmetric):
    x = RNG.laplace(size=20_000).astype(np.float32)
    answer = ask(server, np.array_split(x, 3), method="mse", output_type=output_type, symmetric=symmetric)
    ranges, scale, _ = calibrated(x, "mse", output_type, symmetric)
    assert floats(answer.range).tobytes() == ranges.tobytes() and floats(answer.scale).tobytes() == scale.tobytes()


def test_entropy_cuts_outliers_off(server):
    x = np.concatenate([RNG.standard_normal(50_000), [80.0]]).astype(np.float32)
    low, high = floats(ask(server, [x], method="entropy", output_type="int8", symmetric=True).range)
    assert -20 < low < -2 and high == -low


def test_the_range_is_what_embeddings_take(server):
    x = RNG.standard_normal((500, 48)).astype(np.float32)
    answer = ask(server, [x], axis=-1)
    codes = server.stub.QuantizeEmbeddings(pb.QuantizeEmbeddingsRequest(x=of(x), recipe=1, ranges=answer.range), timeout=20)
    q = np.frombuffer(codes.y.raw_data, np.uint8).reshape(500, 48)
    assert (q.min(axis=0) == 0).all() and (q.max(axis=0) >= 254).all()


def test_states_and_tensors_in_one_call(server):
    """tests/core/calibrate_methods_test.cc tests what changes no bit of a result."""
    x = RNG.standard_normal((750, 4)).astype(np.float32)
    fields = dict(output_type="int8", axis=1, state=True)
    others = ask(server, [x[:99], x[500:]], method="percentile", **fields).state
    assert ask(server, [x[300:500], others, x[99:300]], method="mse", **fields) == ask(server, [x], method="mse", **fields)


def test_forms_of_a_message(server):
    x = np.float32([-1.5, 0, 3])
    values = tensor_pb2.Tensor(data_type=1, shape=[3], float_values={"values": x})
    integers = tensor_pb2.Tensor(data_type=6, shape=[2], int_values={"values": [-7, 9]})
    empty = tensor(np.zeros((0, 4)))
    low, high = floats(ask(server, [None, values, integers, empty]).range)
    assert (low, high) == (-7, 9)
    # Without options; the same as with empty ones.
    answer = server.stub.Calibrate(iter([pb.CalibrateRequest(x=tensor(x))]), timeout=20)
    assert answer == ask(server, [x]) and answer.zero_point.data_type == TYPES["uint8"]
    # If the only data is an empty tensor, it counts.
    answer = ask(server, [empty], axis=1)
    assert (floats(answer.scale) == 1).all() and answer.elements == 0 and list(answer.range.shape) == [2, 4]


def first(**fields):
    return [pb.CalibrateRequest(options=pb.CalibrationOptions(**fields), x=tensor([1.0]))]


X = [1.0, 2.0]
# One of each kind; tests/core/calibrate_requests_test.cc and tests/server/wire/calibrate_test.cc have the others.
WRONG = {
    "options later": ("options", lambda: [pb.CalibrateRequest(x=tensor(X)), pb.CalibrateRequest(options={}, x=tensor(X))]),
    "method": ("method", lambda: first(method=5)),
    "mse of float8": ("method", lambda: first(method=4, output_type=17)),
    "axis of a later one": ("axis", lambda: list(messages([np.ones((2, 2)), np.ones(2)], axis=1))),
    "type": ("x", lambda: [pb.CalibrateRequest(x=of([1, 2], "uint8"))]),
    "bytes": ("x", lambda: [pb.CalibrateRequest(x=tensor_pb2.Tensor(data_type=1, shape=[3], raw_data=bytes(8)))]),
    "another length": ("x", lambda: list(messages([np.ones((2, 2)), np.ones((2, 3))], axis=1))),
    "nan": ("x", lambda: [pb.CalibrateRequest(x=tensor(X)), pb.CalibrateRequest(x=tensor([0, 1, np.nan]))]),
    "no message": ("x", lambda: []),
    "no data": ("x", lambda: [pb.CalibrateRequest(options={})]),
    "a message of nothing": ("x", lambda: [pb.CalibrateRequest(x=tensor(X)), pb.CalibrateRequest()]),
    "no state": ("state", lambda: [pb.CalibrateRequest(state=b"QDC2")]),
    "no such region": ("x.shared_memory", lambda: [pb.CalibrateRequest(x=shared_tensor("gone", [1], 4))]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(server, case):
    field, made = WRONG[case]
    code, got, text = refusal(lambda: server.stub.Calibrate(iter(made()), timeout=20))
    wanted = grpc.StatusCode.UNIMPLEMENTED if case == "no such region" else grpc.StatusCode.INVALID_ARGUMENT
    assert (code, got) == (wanted, field), text
    if case == "nan":
        assert "x[2] is nan" in text
    # The call is over, but not the connection.
    assert ask(server, [X]).elements == 2


def test_the_first_error_ends_a_call_that_goes_on_sending(server):
    sent = []

    def endless():
        yield pb.CalibrateRequest(x=tensor([np.nan]))
        for number in range(100_000):
            sent.append(number)
            yield pb.CalibrateRequest(x=tensor(np.ones(25_000)))

    assert refusal(lambda: server.stub.Calibrate(endless(), timeout=60))[:2] == (grpc.StatusCode.INVALID_ARGUMENT, "x")
    assert len(sent) < 100_000


def test_bytes_that_are_no_message(server):
    call = server.channel().stream_unary("/quantd.v1.QuantizationService/Calibrate")
    good = pb.CalibrateRequest(x=tensor(X)).SerializeToString()
    for wrong in (b"\xff\xff\xff", good[:-3], b"\x12\x7f" + good):
        code, _, text = refusal(lambda: call(iter([good, wrong]), timeout=10))
        assert code == grpc.StatusCode.INVALID_ARGUMENT and "CalibrateRequest" in text


def test_shared_memory(start):
    folder = Folder()
    try:
        server = start(folder.flag)
        x = RNG.standard_normal((1000, 8)).astype(np.float32)
        folder.file("x", x.tobytes())
        place = shared_tensor("x", list(x.shape), x.nbytes)
        half = shared_tensor("x", [500, 8], x.nbytes // 2)
        rest = shared_tensor("x", [500, 8], x.nbytes // 2, offset=x.nbytes // 2)
        for method in ("min_max", "percentile"):
            wanted = ask(server, [x], method=method, axis=1, state=True)
            assert ask(server, [place], method=method, axis=1, state=True) == wanted
            assert ask(server, [half, rest], method=method, axis=1, state=True) == wanted
        code, field, _ = refusal(lambda: ask(server, [shared_tensor("gone", [1], 4)]))
        assert (code, field) == (grpc.StatusCode.NOT_FOUND, "x.shared_memory.region")
    finally:
        folder.remove()


def test_ten_thousand_tiny_messages(server):
    x = RNG.standard_normal((10_000, 3)).astype(np.float32)
    answer = ask(server, list(x), method="percentile", state=True)
    assert answer == ask(server, [x], method="percentile", state=True) and answer.elements == x.size


def test_a_thousand_calls_at_once(server):
    x = RNG.standard_normal((1000, 64)).astype(np.float32)
    calls = []
    channels = [server.channel() for _ in range(10)]
    stubs = [channel.stream_unary("/quantd.v1.QuantizationService/Calibrate", request_serializer=pb.CalibrateRequest.SerializeToString,
                                  response_deserializer=pb.CalibrateResponse.FromString) for channel in channels]
    for number in range(1000):
        parts = np.array_split(x[number], 4)
        calls.append(stubs[number % 10].future(messages(parts, method="percentile"), timeout=120))
    for number, call in enumerate(calls):
        answer = call.result()
        assert floats(answer.range).tobytes() == calibrated(x[number], "percentile")[0].tobytes()
    for channel in channels:
        channel.close()


def test_calls_of_many_threads_on_one_connection(server):
    x = RNG.standard_normal(200_000).astype(np.float32)
    wanted = ask(server, [x], method="mse", output_type="int8", state=True)
    wrong = []

    def run():
        if ask(server, np.array_split(x, 7), method="mse", output_type="int8", state=True) != wanted:
            wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_it_is_told_and_counted(start):
    server = start()
    assert "calibrate" in server.stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=10).extensions
    x = np.ones((10, 3), np.float32)
    _, call = server.stub.Calibrate.with_call(messages([x, x], output_type="int8", axis=1, state=True), timeout=10, metadata=[("quantd-timing", "1")])
    timing = dict(call.trailing_metadata())["quantd-timing-us"]
    assert [part.split("=")[0] for part in timing.split(",")] == ["decode", "queue", "kernel", "encode"]
    labels = '{grpc_type="client_stream",grpc_service="quantd.v1.QuantizationService",grpc_method="Calibrate"'
    # A call is counted when its trailers are with the kernel, which may be after the client has them.
    wait_for(lambda: server.metrics()[f'grpc_server_handled_total{labels},grpc_code="OK"}}'], 10, "the call is counted")
    counted = server.metrics()
    assert counted[f"grpc_server_started_total{labels}}}"] == 1
    assert counted[f"grpc_server_msg_received_total{labels}}}"] == 2
    assert counted[f"grpc_server_msg_sent_total{labels}}}"] == 1
    assert counted[f'grpc_server_handled_total{labels},grpc_code="OK"}}'] == 1
    assert counted['quantd_elements_total{operation="calibrate",input_type="FLOAT",output_type="INT8"}'] == 60
    assert counted['quantd_tensor_bytes_total{operation="calibrate",direction="in"}'] == 240
    assert counted['quantd_kernel_seconds_count{operation="calibrate"}'] >= 3
    assert counted["quantd_inflight_bytes"] == 0


def test_a_failure_is_in_the_log_without_its_values(start):
    server = start()
    code, _, text = refusal(lambda: ask(server, [[1.0, 2.0, float("inf")]]))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and "x[2] is inf" in text
    line = wait_for(lambda: [line for line in server.log().splitlines() if "call failed" in line], 10, "its line")[0]
    assert "method=Calibrate" in line and "field=x" in line and "inf" not in line.split("call failed")[1]
