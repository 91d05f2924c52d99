"""Client: one object for a server; numpy in, numpy out."""

from typing import Any, Optional, Sequence

import grpc

from . import messages, requests, results
from .errors import from_rpc_error
from .shared import SharedTensor, directory, shared
from .stream import Stream
from .types import DataTypeLike

# Tensors are larger than gRPC's default of 4 MiB; the server has the say (--max_message_bytes).
_CHANNEL_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class Client:
    """A connection to a quantd server. Thread safe; close it, or use it in a `with` statement.

    address: "host:port", "unix:/path.sock", or any other gRPC target.
    timeout: seconds that a call may take when it names no timeout of its own; None waits for ever.
    credentials: gRPC channel credentials for TLS; None speaks plain text.
    options: more gRPC channel options, as (name, value) pairs.
    shared_memory_dir: the directory that the server was given as --shared_memory_dir, for shared and shared_empty;
    None: that of QUANTD_SHARED_MEMORY_DIR.

    Every call raises QuantdError (see quantd.errors) when it fails, and TypeError or ValueError for arguments that
    have no form on the wire. Arrays are returned in their logical shape, with ml_dtypes for what numpy lacks.
    """

    def __init__(
        self,
        address: str = "127.0.0.1:50051",
        *,
        timeout: Optional[float] = None,
        credentials: Optional[grpc.ChannelCredentials] = None,
        options: Sequence = (),
        shared_memory_dir: Optional[str] = None,
    ):
        self.address = address
        self._shared_memory_dir = shared_memory_dir
        self._timeout = timeout
        options = _CHANNEL_OPTIONS + list(options)
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            self._channel = grpc.secure_channel(address, credentials, options)

        def unary(path, request, response):
            return self._channel.unary_unary(
                path, request_serializer=request.SerializeToString, response_deserializer=response.FromString
            )

        service = f"/{messages.SERVICE}/"
        self._quantize = unary(service + "Quantize", messages.QuantizeRequest, messages.QuantizeResponse)
        self._dequantize = unary(service + "Dequantize", messages.DequantizeRequest, messages.DequantizeResponse)
        self._dynamic_quantize = unary(
            service + "DynamicQuantize", messages.DynamicQuantizeRequest, messages.DynamicQuantizeResponse
        )
        self._info = unary(
            service + "GetServerInfo", messages.GetServerInfoRequest, messages.GetServerInfoResponse
        )
        self._health = unary(
            "/grpc.health.v1.Health/Check", messages.HealthCheckRequest, messages.HealthCheckResponse
        )
        self._stream = self._channel.stream_stream(
            service + "Stream",
            request_serializer=messages.StreamRequest.SerializeToString,
            response_deserializer=messages.StreamResponse.FromString,
        )

    def close(self) -> None:
        """Closes the connection; calls in flight are cancelled."""
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _call(self, method, request, timeout: Optional[float]):
        try:
            return method(request, timeout=self._timeout if timeout is None else timeout)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from None

    def quantize(
        self,
        x: Any,
        scale: Any,
        zero_point: Any = None,
        *,
        output_type: Optional[DataTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        saturate: bool = True,
        precision: Optional[DataTypeLike] = None,
        zero_point_order: Optional[str] = None,
        report_error: bool = False,
        out: Optional[SharedTensor] = None,
        timeout: Optional[float] = None,
    ) -> results.Quantized:
        """y = clamp(rint(x / scale) + zero_point), as ONNX QuantizeLinear.

        x: float32, float16, bfloat16 or int32. scale: of those, or float8_e8m0fnu; Python numbers are float32.
        zero_point: of scale's shape and of y's type; Python integers take output_type, or uint8.
        output_type: type of y; without it zero_point's type, else uint8.
        Which scale belongs to which element: a scale of one element is for the tensor; a 1-D scale is one an index along
        axis (1 when unset); block_size cuts axis into blocks, block_shape every dimension (-1: the whole dimension).
        saturate: for the float8 types, whether what is too large becomes the largest value, or else NaN or infinity.
        precision: type of the division, when not that of scale.
        zero_point_order: "after_rounding" (ONNX, the default) or "before_rounding" (oneDNN Graph).
        report_error: whether the result carries .error.
        out: a SharedTensor for y, which must be large enough and none of the arguments; y is then a view of it.
        """
        request = requests.quantize(
            x,
            scale,
            zero_point,
            output_type=output_type,
            axis=axis,
            block_size=block_size,
            block_shape=block_shape,
            saturate=saturate,
            precision=precision,
            zero_point_order=zero_point_order,
            report_error=report_error,
            out=out,
        )
        return results.quantized(self._call(self._quantize, request, timeout), out)

    def dequantize(
        self,
        x: Any,
        scale: Any,
        zero_point: Any = None,
        *,
        output_type: Optional[DataTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        tensor_scale: Any = None,
        out: Optional[SharedTensor] = None,
        timeout: Optional[float] = None,
    ) -> results.Dequantized:
        """y = (x - zero_point) * scale, as ONNX DequantizeLinear.

        x: any output type of quantize, or int32. zero_point: x's type, or int32. output_type: float32, float16 or
        bfloat16; without it scale's type. tensor_scale: one float32 that every scale is multiplied by (NVFP4).
        axis, block_size, block_shape and out as in quantize.
        """
        request = requests.dequantize(
            x,
            scale,
            zero_point,
            output_type=output_type,
            axis=axis,
            block_size=block_size,
            block_shape=block_shape,
            tensor_scale=tensor_scale,
            out=out,
        )
        return results.dequantized(self._call(self._dequantize, request, timeout), out)

    def dynamic_quantize(
        self,
        x: Any,
        *,
        output_type: Optional[DataTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        saturate: bool = True,
        scale_type: Optional[DataTypeLike] = None,
        symmetry: Optional[str] = None,
        non_finite: Optional[str] = None,
        report_error: bool = False,
        out: Optional[SharedTensor] = None,
        timeout: Optional[float] = None,
    ) -> results.DynamicQuantized:
        """Finds scale and zero point in x, then quantizes; DynamicQuantizeLinear for uint8.

        One scale for the tensor, or one an index along axis, a block along axis (block_size) or a block of block_shape.
        scale_type: float32 (default), float16, bfloat16; float8_e8m0fnu gives the OCP microscaling formats with
        block_size=32, float8_e4m3fn gives NVFP4 with block_size=16.
        symmetry: "asymmetric" (default for integers) or "symmetric". non_finite: "reject" (default) or "ignore".
        out as in quantize.
        """
        request = requests.dynamic_quantize(
            x,
            output_type=output_type,
            axis=axis,
            block_size=block_size,
            block_shape=block_shape,
            saturate=saturate,
            scale_type=scale_type,
            symmetry=symmetry,
            non_finite=non_finite,
            report_error=report_error,
            out=out,
        )
        return results.dynamic_quantized(self._call(self._dynamic_quantize, request, timeout), out)

    def shared(self, x: Any) -> SharedTensor:
        """The array, in memory that the server can read as well: no call with it sends its bytes. See SharedTensor."""
        return shared(directory(self._shared_memory_dir), x)

    def shared_empty(self, shape: Sequence[int], dtype: DataTypeLike) -> SharedTensor:
        """Shared memory for an answer of that shape and type, or of as many bytes. See SharedTensor."""
        return SharedTensor(directory(self._shared_memory_dir), shape, dtype)

    def stream(self, *, max_in_flight: int = 16, timeout: Optional[float] = None) -> Stream:
        """Opens a stream of many calls; see Stream. timeout is for the whole stream, None for none at all."""
        return Stream(self._stream, max_in_flight, timeout)

    def info(self, *, timeout: Optional[float] = None) -> results.ServerInfo:
        """Version, instruction set, threads and limits of the server."""
        return results.server_info(self._call(self._info, messages.GetServerInfoRequest(), timeout))

    def health(self, service: str = "", *, timeout: Optional[float] = None) -> str:
        """The server's health: "SERVING", "NOT_SERVING" or "UNKNOWN"."""
        answer = self._call(self._health, messages.HealthCheckRequest(service=service), timeout)
        return answer.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number[answer.status].name
