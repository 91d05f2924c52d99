"""A quantd of plain Python inside the test's process: the contract's service over the numpy oracle of quantd_conformance.

It is for the client's unit tests, which need an answer and not a server. Run as a program it listens until it is killed, and
prints its address (so that the conformance suite can be developed with it).
"""

import os
import sys
import time
from concurrent import futures
from pathlib import Path

import grpc
import numpy as np

from quantd import messages
from quantd.types import from_message, to_message

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests" / "conformance"))
from quantd_conformance import oracle, oracle_embeddings  # noqa: E402
from quantd_conformance import oracle_types as ot  # noqa: E402

_BY_NUMBER = {t.number: t for t in ot.TYPES.values()}
SLEEP_X = 12345.0  # as a first element it makes a call slow, for tests of timeouts


def _options(request, names):
    options = {"block_size": request.block_size, "block_shape": list(request.block_shape)}
    if request.HasField("axis"):
        options["axis"] = request.axis
    for name in names:
        if getattr(request, name):
            options[name] = _BY_NUMBER[getattr(request, name)]
    return options


def _file(reference):
    return Path(os.environ["QUANTD_SHARED_MEMORY_DIR"], reference.region)


def _in_a_message(tensor):
    """The tensor itself, for one in shared memory."""
    if tensor.WhichOneof("contents") == "shared_memory":
        place = tensor.shared_memory
        tensor.raw_data = _file(place).read_bytes()[place.offset : place.offset + place.byte_size]
    return tensor


def _in_its_place(request, answer):
    """The answer, with y where the request wants it."""
    if request.HasField("output"):
        raw = answer.y.raw_data
        with open(_file(request.output), "r+b") as file:
            file.seek(request.output.offset)
            file.write(raw)
        answer.y.shared_memory.CopyFrom(request.output)
        answer.y.shared_memory.byte_size = len(raw)
    return answer


def _array(request, name):
    if not request.HasField(name):
        if name in ("x", "scale"):
            raise oracle.Invalid(name, "is required")
        return None
    try:
        return from_message(_in_a_message(getattr(request, name)))
    except ValueError as error:
        raise oracle.Invalid(f"{name}.raw_data", str(error)) from None


def _tensor(array, encoding):
    if encoding != 2:
        return to_message(messages.Tensor, array)
    t = ot.of(array)
    tensor = messages.Tensor(data_type=t.number, shape=array.shape)
    if t.kind == "int":
        tensor.int_values.values.extend(ot.to_int(array).reshape(-1).tolist())
    else:
        tensor.float_values.values.extend(ot.to_float(array).reshape(-1).tolist())
    return tensor


def _report(error):
    return {} if error is None else {"quantization_error": vars(error)}


def quantize(request):
    result = oracle.quantize(
        _array(request, "x"),
        _array(request, "scale"),
        _array(request, "zero_point"),
        saturate=request.saturate if request.HasField("saturate") else True,
        before_rounding=request.zero_point_order == 2,
        report_error=request.report_error,
        **_options(request, ["output_type", "precision"]),
    )
    return messages.QuantizeResponse(y=_tensor(result.y, request.output_encoding), **_report(result.error))


def dequantize(request):
    result = oracle.dequantize(
        _array(request, "x"),
        _array(request, "scale"),
        _array(request, "zero_point"),
        tensor_scale=_array(request, "tensor_scale"),
        **_options(request, ["output_type"]),
    )
    return messages.DequantizeResponse(y=_tensor(result.y, request.output_encoding))


def dynamic_quantize(request):
    x = _array(request, "x")
    if x.size and ot.to_float(x).reshape(-1)[0] == np.float32(SLEEP_X):
        time.sleep(2)
    result = oracle.dynamic_quantize(
        x,
        saturate=request.saturate if request.HasField("saturate") else True,
        symmetric=request.symmetry == 2,
        ignore=request.non_finite == 2,
        report_error=request.report_error,
        **_options(request, ["output_type", "scale_type"]),
    )
    tensors = {"y": result.y, "y_scale": result.scale, "y_zero_point": result.zero_point,
               "y_tensor_scale": result.tensor_scale}
    tensors = {k: _tensor(v, request.output_encoding) for k, v in tensors.items() if v is not None}
    return messages.DynamicQuantizeResponse(**tensors, **_report(result.error))


def quantize_embeddings(request):
    x = _array(request, "x")
    y, error = oracle_embeddings.quantize_embeddings(
        x,
        recipe={1: "ranges", 2: "unit", 3: "direction", 4: "bits"}[request.recipe],
        ranges=_array(request, "ranges"),
        signed=request.output_type == 3,
        dimensions=request.dimensions,
        normalize=request.normalize,
        lsb_first=request.bit_order == 2,
        greater_or_equal=request.bit_threshold == 2,
        twos_complement=request.signed_bits == 2,
        ignore=request.non_finite == 2,
        report_error=request.report_error,
    )
    return messages.QuantizeEmbeddingsResponse(y=_tensor(y, request.output_encoding), **_report(error))


_OPERATIONS = {
    "quantize": quantize,
    "dequantize": dequantize,
    "dynamic_quantize": dynamic_quantize,
    "quantize_embeddings": quantize_embeddings,
}


def _abort(context, error):
    def any_of(name, message):
        return {"type_url": f"type.googleapis.com/google.rpc.{name}", "value": message.SerializeToString()}

    violation = {"field": error.field, "description": str(error)}
    details = messages.Status(code=3, message=str(error), details=[
        any_of("BadRequest", messages.BadRequest(field_violations=[violation])),
        any_of("ErrorInfo", messages.ErrorInfo(reason="BAD_REQUEST", domain="quantd", metadata={"rule": "numerics"})),
        any_of("RetryInfo", messages.RetryInfo(retry_delay={"seconds": 1, "nanos": 500000000})),
    ])
    context.set_trailing_metadata([("grpc-status-details-bin", details.SerializeToString())])
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))


def _unary(operation):
    def call(request, context):
        try:
            return _in_its_place(request, operation(request))
        except oracle.Invalid as error:
            _abort(context, error)

    return call


def _stream(requests, context):
    for item in requests:
        kind = item.WhichOneof("request")
        answer = messages.StreamResponse(id=item.id)
        try:
            request = getattr(item, kind)
            getattr(answer, kind).CopyFrom(_in_its_place(request, _OPERATIONS[kind](request)))
        except oracle.Invalid as error:
            answer.error.code, answer.error.message = 3, str(error)
            answer.error.field_violations.add(field=error.field, description=str(error))
        yield answer


def _info(request, context):
    return messages.GetServerInfoResponse(
        version="fake", target="numpy", supported_targets=["numpy"], threads=1, max_message_bytes=1 << 28,
        memory_budget_bytes=1 << 30, extensions=["stream"])


def start(port: int = 0) -> "tuple[grpc.Server, str]":
    """Starts a server on loopback; the caller stops it."""
    m = messages

    def handler(function, request, response):
        return grpc.unary_unary_rpc_method_handler(function, request.FromString, response.SerializeToString)

    methods = {
        "Quantize": handler(_unary(quantize), m.QuantizeRequest, m.QuantizeResponse),
        "Dequantize": handler(_unary(dequantize), m.DequantizeRequest, m.DequantizeResponse),
        "DynamicQuantize": handler(_unary(dynamic_quantize), m.DynamicQuantizeRequest, m.DynamicQuantizeResponse),
        "QuantizeEmbeddings": handler(
            _unary(quantize_embeddings), m.QuantizeEmbeddingsRequest, m.QuantizeEmbeddingsResponse),
        "GetServerInfo": handler(_info, m.GetServerInfoRequest, m.GetServerInfoResponse),
        "Stream": grpc.stream_stream_rpc_method_handler(
            _stream, m.StreamRequest.FromString, m.StreamResponse.SerializeToString),
    }

    def health(request, context):
        if request.service:
            context.abort(grpc.StatusCode.NOT_FOUND, f"unknown service {request.service}")
        return m.HealthCheckResponse(status=1)

    server = grpc.server(
        futures.ThreadPoolExecutor(8),
        options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((
        grpc.method_handlers_generic_handler(m.SERVICE, methods),
        grpc.method_handlers_generic_handler(
            "grpc.health.v1.Health", {"Check": handler(health, m.HealthCheckRequest, m.HealthCheckResponse)}),
    ))
    address = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    server.start()
    return server, address


if __name__ == "__main__":
    running, where = start()
    print(where, flush=True)
    running.wait_for_termination()
