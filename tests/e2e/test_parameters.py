"""Stored parameters over the wire: what is stored, its reference, and requests that name it."""

import random

import grpc
import numpy as np
import pytest
from sets import RANGES, UINT4, UNIT, X, check_file, code_of, embeddings_set, file_of, int8, put, quantize_set, stub_of
from support import health_pb2, parameters_pb2 as pp, pb, tensor, tensor_pb2, wait_for

HEX = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sets")


@pytest.fixture(scope="module")
def server_flags(folder):
    return (f"--parameters_dir={folder}",)


def test_put_get_list(server, folder):
    parameters = quantize_set([0.5, 0.25, 2], zero_point=int8([1, -2, 3]), axis=1)
    reference = put(server, "layer.0", parameters)
    assert reference.startswith("layer.0@sha256:")
    data = check_file(folder, reference)
    assert put(server, "layer.0", parameters) == reference
    stub = stub_of(server)
    for asked in (reference, "layer.0"):
        answer = stub.GetParameters(pp.GetParametersRequest(reference=asked), timeout=10)
        assert answer.reference == reference and answer.parameters == parameters
        assert answer.parameters.SerializeToString(deterministic=True) == data
    other = put(server, "layer.1", parameters)
    assert other.split(":")[1] == reference.split(":")[1]
    listed = stub.ListParameters(pp.ListParametersRequest(prefix="layer."), timeout=10).references
    assert list(listed) == [reference, other]
    assert list(stub.ListParameters(pp.ListParametersRequest(prefix="layer.1@"), timeout=10).references) == [other]
    assert not stub.ListParameters(pp.ListParametersRequest(prefix="../"), timeout=10).references


def test_what_a_server_says_of_itself(server, start):
    without = start()
    assert "parameters" in server.stub.GetServerInfo(pb.GetServerInfoRequest()).extensions
    assert "parameters" not in without.stub.GetServerInfo(pb.GetServerInfoRequest()).extensions
    for each in (server, without):
        check = health_pb2.HealthCheckRequest(service="quantd.v1.ParametersService")
        assert each.health().Check(check, timeout=10).status == health_pb2.HealthCheckResponse.SERVING
    code, text = code_of(stub_of(without).PutParameters, pp.PutParametersRequest(name="a", parameters=quantize_set()))
    assert code == "FAILED_PRECONDITION" and "--parameters_dir" in text
    code, text = code_of(without.stub.Quantize, pb.QuantizeRequest(x=X, parameters="a"))
    assert code == "FAILED_PRECONDITION" and "--parameters_dir" in text


def test_calls_are_counted(server):
    def count(method, code):
        labels = f'grpc_type="unary",grpc_service="quantd.v1.ParametersService",grpc_method="{method}",grpc_code="{code}"'
        return server.metrics()[f"grpc_server_handled_total{{{labels}}}"]

    before = count("PutParameters", "OK"), count("GetParameters", "NotFound")
    put(server, "counted", quantize_set())
    code_of(stub_of(server).GetParameters, pp.GetParametersRequest(reference="nobody"))
    wait_for(lambda: (count("PutParameters", "OK"), count("GetParameters", "NotFound")) == (before[0] + 1, before[1] + 1), 5, "counted")


FORMS = [
    ("per tensor", dict(scale=0.5)),
    ("a zero point", dict(scale=0.1, zero_point=int8(-7))),
    ("an axis", dict(scale=[0.5, 1, 2], zero_point=int8([1, 2, 3]), axis=-1)),
    ("an output type", dict(scale=0.5, output_type=UINT4)),
    ("blocks", dict(scale=[[0.5, 1, 2], [1, 3, 0.25]], axis=0, block_size=2)),
    ("block_shape", dict(scale=[[0.5], [2]], block_shape=[2, -1])),
    ("FLOAT8", dict(scale=0.01, output_type=17, saturate=False)),
    ("before rounding", dict(scale=0.3, zero_point=int8(3), zero_point_order=2)),
]


@pytest.mark.parametrize("fields", [case[1] for case in FORMS], ids=[case[0] for case in FORMS])
def test_a_named_set_is_the_same_as_its_fields(server, fields):
    parameters = quantize_set(**fields)
    reference = put(server, "forms", parameters)
    inline = pb.QuantizeRequest(x=X, report_error=True)
    inline.MergeFrom(parameters.quantize)
    expected = server.stub.Quantize(inline, timeout=10)
    request = pb.QuantizeRequest(x=X, report_error=True, parameters=reference)
    answer = server.stub.Quantize(request, timeout=10)
    assert answer.parameters == reference
    answer.parameters = ""
    assert answer == expected
    back = pb.DequantizeRequest(x=expected.y)
    for field in ("scale", "zero_point", "axis", "block_size", "block_shape"):
        if field in [found[0].name for found in parameters.quantize.ListFields()]:
            only = pb.DequantizeRequest(**{field: getattr(parameters.quantize, field)})
            back.MergeFrom(only)
    expected = server.stub.Dequantize(back, timeout=10)
    answer = server.stub.Dequantize(pb.DequantizeRequest(x=back.x, parameters=reference), timeout=10)
    assert answer.parameters == reference and answer.y == expected.y
    request.output_encoding = 2
    items = [pb.StreamRequest(id=1, quantize=request), pb.StreamRequest(id=2, quantize=pb.QuantizeRequest(x=X, parameters=reference))]
    answers = list(server.stub.Stream(iter(items), timeout=10))
    assert [each.quantize.parameters for each in answers] == [reference] * 2


def test_embeddings(server):
    parameters = embeddings_set(recipe=RANGES, ranges=tensor([[-3, -2, -1], [3, 2, 1]]), normalize=True, output_type=3)
    reference = put(server, "embedder", parameters)
    inline = pb.QuantizeEmbeddingsRequest(x=X)
    inline.MergeFrom(parameters.quantize_embeddings)
    expected = server.stub.QuantizeEmbeddings(inline, timeout=10)
    request = pb.QuantizeEmbeddingsRequest(x=X, parameters="embedder")
    answer = server.stub.QuantizeEmbeddings(request, timeout=10)
    assert answer.y == expected.y and answer.parameters == reference
    (item,) = server.stub.Stream(iter([pb.StreamRequest(id=7, quantize_embeddings=request)]), timeout=10)
    assert item.id == 7 and item.quantize_embeddings == answer


def test_requests_that_do_not_go_with_the_set(server):
    reference = put(server, "both", quantize_set(0.5, output_type=3))
    embedder = put(server, "unit", embeddings_set(recipe=UNIT))
    put(server, "both", quantize_set(0.25))
    call = server.stub.Quantize
    cases = [
        (dict(parameters=reference, scale=tensor(1)), "INVALID_ARGUMENT", "scale is in the request"),
        (dict(parameters=reference, output_type=3), "INVALID_ARGUMENT", "output_type is in the request"),
        (dict(parameters=reference, zero_point=tensor_pb2.Tensor(data_type=2, raw_data=b"\1")), "INVALID_ARGUMENT", "output_type"),
        (dict(parameters=embedder), "INVALID_ARGUMENT", "a set of quantize_embeddings"),
        (dict(parameters="both"), "INVALID_ARGUMENT", "several sets"),
        (dict(parameters="both@sha256:" + HEX), "NOT_FOUND", "both@sha256:" + HEX),
        (dict(parameters="nobody"), "NOT_FOUND", "nobody"),
    ]
    for bad in ("../etc", "a\0b", "a@md5:" + HEX):
        cases.append((dict(parameters=bad), "INVALID_ARGUMENT", "parameters is "))
    for fields, code, words in cases:
        got, text = code_of(call, pb.QuantizeRequest(x=X, **fields))
        assert got == code and words in text, (fields, got, text)
        (item,) = server.stub.Stream(iter([pb.StreamRequest(id=3, quantize=pb.QuantizeRequest(x=X, **fields))]), timeout=10)
        assert grpc.StatusCode.__members__[code].value[0] == item.error.code and words in item.error.message
    got, text = code_of(server.stub.QuantizeEmbeddings, pb.QuantizeEmbeddingsRequest(x=X, parameters=reference))
    assert got == "INVALID_ARGUMENT" and "a set of quantize" in text


# A few of each kind; tests/server/stored_parameters/canonical_test.cc and tests/server/wire/stored_set_test.cc have all.
BAD_SETS = [
    ("no kind", pp.ParameterSet(), "parameters.kind"),
    ("x", pp.ParameterSet(quantize=pb.QuantizeRequest(x=X)), "parameters.quantize.x"),
    ("no type", pp.ParameterSet(quantize=pb.QuantizeRequest(scale=tensor_pb2.Tensor(raw_data=b"1234"))), "parameters.quantize.scale.data_type"),
    ("too few bytes", pp.ParameterSet(quantize=pb.QuantizeRequest(scale=tensor_pb2.Tensor(data_type=1, shape=[2], raw_data=b"1234"))),
     "parameters.quantize.scale.raw_data"),
    ("a scale of 0", quantize_set(0.0), "parameters.quantize.scale"),
    ("a zero point of another type", quantize_set(1, zero_point=int8(1), output_type=2), "parameters.quantize.output_type"),
    ("the largest axis", quantize_set([1, 2], axis=(1 << 63) - 1), "parameters.quantize.axis"),
    ("ranges upside down", embeddings_set(recipe=RANGES, ranges=tensor([[1], [0]])), "parameters.quantize_embeddings.ranges"),
]


@pytest.mark.parametrize("parameters, field", [case[1:] for case in BAD_SETS], ids=[case[0] for case in BAD_SETS])
def test_sets_that_are_not_stored(server, folder, parameters, field):
    before = sorted(folder.iterdir())
    code, text = code_of(stub_of(server).PutParameters, pp.PutParametersRequest(name="bad", parameters=parameters))
    assert code == "INVALID_ARGUMENT" and text.startswith(field), text
    assert sorted(folder.iterdir()) == before


def test_names(server, folder):
    before = sorted(folder.iterdir())
    for bad in ("", "../a", "a\0", "a" * 65):  # tests/server/stored_parameters/reference_test.cc has others
        code, text = code_of(stub_of(server).PutParameters, pp.PutParametersRequest(name=bad, parameters=quantize_set()))
        assert code == "INVALID_ARGUMENT" and text.startswith("name is "), text
    assert sorted(folder.iterdir()) == before
    for good in ("a" * 64, "a-._z"):
        check_file(folder, put(server, good, quantize_set()))


def test_forms_of_one_set_are_one_file(server, folder):
    """Values, unknown fields, padding bits and the order of fields make no difference."""
    raw = quantize_set([0.5, 2], zero_point=tensor_pb2.Tensor(data_type=UINT4, shape=[2], raw_data=b"\x21"), axis=0)
    values = pp.ParameterSet(quantize=raw.quantize)
    values.quantize.scale.float_values.values[:] = [0.5, 2]
    values.quantize.zero_point.int_values.values[:] = [1, 2]
    reference = put(server, "one", raw)
    assert put(server, "one", values) == reference
    odd = quantize_set([1, 2, 3], zero_point=tensor_pb2.Tensor(data_type=UINT4, shape=[3], raw_data=b"\x21\x03"), axis=0)
    padded = pp.ParameterSet(quantize=odd.quantize)
    padded.quantize.zero_point.raw_data = b"\x21\xf3"
    assert put(server, "two", padded) == put(server, "two", odd)
    assert check_file(folder, put(server, "two", padded)).endswith(odd.quantize.zero_point.raw_data + b"\x28\x00")
    inner = raw.quantize.SerializeToString()
    set_bytes = b"\x0a" + bytes([len(inner)]) + inner + b"\xf8\x07\x01"  # and an unknown field
    message = b"\x12" + bytes([len(set_bytes)]) + set_bytes + b"\x0a\x03one" + b"\xa2\x06\x02hi"
    answer = server.channel().unary_unary("/quantd.v1.ParametersService/PutParameters")(message, timeout=10)
    assert pp.PutParametersResponse.FromString(answer).reference == reference


def random_set(source):
    if source.random() < 0.3:
        d = source.randrange(1, 40)
        low = np.random.default_rng(source.randrange(1 << 30)).normal(size=d).astype(np.float32)
        return embeddings_set(recipe=RANGES, ranges=tensor([low, low + 1]), normalize=source.random() < 0.5,
                              output_type=source.choice([0, 2, 3]), non_finite=source.choice([0, 1, 2]))
    n = source.randrange(1, 50)
    per_axis = source.random() < 0.7
    scale = np.random.default_rng(source.randrange(1 << 30)).uniform(0.1, 9, n).astype(np.float32) if per_axis else 0.25
    fields = {}
    if source.random() < 0.5:
        fields["zero_point"] = int8([source.randrange(-128, 128) for _ in range(n)] if per_axis else 3)
    elif source.random() < 0.5:
        fields["output_type"] = source.choice([2, 3, 4, 5, 17, 21, 25])
    if source.random() < 0.5:
        fields["axis"] = source.choice([0, 1, -1, 5])
    if source.random() < 0.3:
        fields["saturate"] = source.random() < 0.5
    return quantize_set(scale, **fields)


def test_a_thousand_sets_are_what_python_writes(server, folder):
    source = random.Random(20261123)
    stub = stub_of(server)
    stored = set()
    for i in range(1000):
        parameters = random_set(source)
        reference = stub.PutParameters(pp.PutParametersRequest(name="random", parameters=parameters), timeout=10).reference
        assert check_file(folder, reference) == parameters.SerializeToString(deterministic=True), i
        stored.add(reference)
    listed = stub.ListParameters(pp.ListParametersRequest(prefix="random@"), timeout=10).references
    assert list(listed) == sorted(stored) and len(stored) > 500


def test_bytes_that_are_no_message(server):
    for method in ("PutParameters", "GetParameters", "ListParameters"):
        call = server.channel().unary_unary("/quantd.v1.ParametersService/" + method)
        for message in (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x12\x05\x0a", b"\x0b"):
            assert code_of(call, message)[0] == "INVALID_ARGUMENT", (method, message)
    # A name that is not UTF-8 is refused, and cannot forge a line of the log.
    call = server.channel().unary_unary("/quantd.v1.QuantizationService/Quantize")
    assert code_of(call, b"\x82\x01\x02\xff\xfe")[0] == "INVALID_ARGUMENT"
    assert "libprotobuf" not in server.log()


def test_the_largest_set_and_larger_ones(server, folder):
    limit = 16 << 20
    n = (limit - 200) // 4
    # Along an axis, and far too many for any x: found when the set is used.
    reference = put(server, "large", quantize_set(np.full(n, 0.5, np.float32), axis=0), timeout=60)
    assert file_of(folder, reference).stat().st_size <= limit
    answer = stub_of(server).GetParameters(pp.GetParametersRequest(reference=reference), timeout=60)
    assert len(answer.parameters.quantize.scale.raw_data) == 4 * n
    code, text = code_of(server.stub.Quantize, pb.QuantizeRequest(x=X, parameters=reference))
    assert code == "INVALID_ARGUMENT" and text.startswith("scale")
    call = stub_of(server).PutParameters
    for too_large in (limit // 4, limit // 2):
        request = pp.PutParametersRequest(name="large", parameters=quantize_set(np.full(too_large, 0.5, np.float32), axis=0))
        code, text = code_of(call, request)
        assert code == "INVALID_ARGUMENT" and "at most 16777216" in text, (too_large, text)
    # Larger than any message.
    request.parameters.quantize.scale.raw_data = bytes(80 << 20)
    assert code_of(call, request)[0] == "RESOURCE_EXHAUSTED"
