"""The contract's message classes, made from the descriptors that the installation compiled (contract.binpb).

They live in a descriptor pool of their own, so they clash with nothing else that a process has loaded. Programs rarely
need them: `Client` speaks numpy. They are here for tests and for messages written by hand.
"""

from importlib import resources
from typing import Any, Dict

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _load() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    data = (resources.files(__package__) / "contract.binpb").read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL = _load()
SERVICE = "quantd.v1.QuantizationService"
PARAMETERS_SERVICE = "quantd.v1.ParametersService"


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))


Tensor: Any = _message("quantd.v1.Tensor")
FloatValues: Any = _message("quantd.v1.FloatValues")
IntValues: Any = _message("quantd.v1.IntValues")
SharedMemoryReference: Any = _message("quantd.v1.SharedMemoryReference")
QuantizeRequest: Any = _message("quantd.v1.QuantizeRequest")
QuantizeResponse: Any = _message("quantd.v1.QuantizeResponse")
DequantizeRequest: Any = _message("quantd.v1.DequantizeRequest")
DequantizeResponse: Any = _message("quantd.v1.DequantizeResponse")
DynamicQuantizeRequest: Any = _message("quantd.v1.DynamicQuantizeRequest")
DynamicQuantizeResponse: Any = _message("quantd.v1.DynamicQuantizeResponse")
QuantizeEmbeddingsRequest: Any = _message("quantd.v1.QuantizeEmbeddingsRequest")
QuantizeEmbeddingsResponse: Any = _message("quantd.v1.QuantizeEmbeddingsResponse")
CalibrationOptions: Any = _message("quantd.v1.CalibrationOptions")
CalibrateRequest: Any = _message("quantd.v1.CalibrateRequest")
CalibrateResponse: Any = _message("quantd.v1.CalibrateResponse")
ParameterSet: Any = _message("quantd.v1.ParameterSet")
PutParametersRequest: Any = _message("quantd.v1.PutParametersRequest")
PutParametersResponse: Any = _message("quantd.v1.PutParametersResponse")
GetParametersRequest: Any = _message("quantd.v1.GetParametersRequest")
GetParametersResponse: Any = _message("quantd.v1.GetParametersResponse")
ListParametersRequest: Any = _message("quantd.v1.ListParametersRequest")
ListParametersResponse: Any = _message("quantd.v1.ListParametersResponse")
StreamRequest: Any = _message("quantd.v1.StreamRequest")
StreamResponse: Any = _message("quantd.v1.StreamResponse")
GetServerInfoRequest: Any = _message("quantd.v1.GetServerInfoRequest")
GetServerInfoResponse: Any = _message("quantd.v1.GetServerInfoResponse")

# Requests and answers by the names of the operations, which are those of Stream's fields.
REQUESTS: Dict[str, Any] = {
    "quantize": QuantizeRequest,
    "dequantize": DequantizeRequest,
    "dynamic_quantize": DynamicQuantizeRequest,
    "quantize_embeddings": QuantizeEmbeddingsRequest,
}
ANSWERS: Dict[str, Any] = {
    "quantize": QuantizeResponse,
    "dequantize": DequantizeResponse,
    "dynamic_quantize": DynamicQuantizeResponse,
    "quantize_embeddings": QuantizeEmbeddingsResponse,
}
METHODS: Dict[str, str] = {
    "quantize": "Quantize",
    "dequantize": "Dequantize",
    "dynamic_quantize": "DynamicQuantize",
    "quantize_embeddings": "QuantizeEmbeddings",
}

Status: Any = _message("quantd.client.wire.Status")
BadRequest: Any = _message("quantd.client.wire.BadRequest")
ErrorInfo: Any = _message("quantd.client.wire.ErrorInfo")
RetryInfo: Any = _message("quantd.client.wire.RetryInfo")
HealthCheckRequest: Any = _message("quantd.client.wire.HealthCheckRequest")
HealthCheckResponse: Any = _message("quantd.client.wire.HealthCheckResponse")
