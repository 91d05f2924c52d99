"""The contract's message classes, made from the descriptors that the installation compiled (contract.binpb).

They live in a descriptor pool of their own, so they clash with nothing else that a process has loaded. Programs rarely
need them: `Client` speaks numpy. They are here for tests and for messages written by hand.
"""

from importlib import resources

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


def _message(name: str):
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))


Tensor = _message("quantd.v1.Tensor")
FloatValues = _message("quantd.v1.FloatValues")
IntValues = _message("quantd.v1.IntValues")
SharedMemoryReference = _message("quantd.v1.SharedMemoryReference")
QuantizeRequest = _message("quantd.v1.QuantizeRequest")
QuantizeResponse = _message("quantd.v1.QuantizeResponse")
DequantizeRequest = _message("quantd.v1.DequantizeRequest")
DequantizeResponse = _message("quantd.v1.DequantizeResponse")
DynamicQuantizeRequest = _message("quantd.v1.DynamicQuantizeRequest")
DynamicQuantizeResponse = _message("quantd.v1.DynamicQuantizeResponse")
QuantizeEmbeddingsRequest = _message("quantd.v1.QuantizeEmbeddingsRequest")
QuantizeEmbeddingsResponse = _message("quantd.v1.QuantizeEmbeddingsResponse")
CalibrationOptions = _message("quantd.v1.CalibrationOptions")
CalibrateRequest = _message("quantd.v1.CalibrateRequest")
CalibrateResponse = _message("quantd.v1.CalibrateResponse")
ParameterSet = _message("quantd.v1.ParameterSet")
PutParametersRequest = _message("quantd.v1.PutParametersRequest")
PutParametersResponse = _message("quantd.v1.PutParametersResponse")
GetParametersRequest = _message("quantd.v1.GetParametersRequest")
GetParametersResponse = _message("quantd.v1.GetParametersResponse")
ListParametersRequest = _message("quantd.v1.ListParametersRequest")
ListParametersResponse = _message("quantd.v1.ListParametersResponse")
StreamRequest = _message("quantd.v1.StreamRequest")
StreamResponse = _message("quantd.v1.StreamResponse")
GetServerInfoRequest = _message("quantd.v1.GetServerInfoRequest")
GetServerInfoResponse = _message("quantd.v1.GetServerInfoResponse")

# Requests and answers by the names of the operations, which are those of Stream's fields.
REQUESTS = {
    "quantize": QuantizeRequest,
    "dequantize": DequantizeRequest,
    "dynamic_quantize": DynamicQuantizeRequest,
    "quantize_embeddings": QuantizeEmbeddingsRequest,
}
ANSWERS = {
    "quantize": QuantizeResponse,
    "dequantize": DequantizeResponse,
    "dynamic_quantize": DynamicQuantizeResponse,
    "quantize_embeddings": QuantizeEmbeddingsResponse,
}
METHODS = {
    "quantize": "Quantize",
    "dequantize": "Dequantize",
    "dynamic_quantize": "DynamicQuantize",
    "quantize_embeddings": "QuantizeEmbeddings",
}

Status = _message("quantd.client.wire.Status")
BadRequest = _message("quantd.client.wire.BadRequest")
ErrorInfo = _message("quantd.client.wire.ErrorInfo")
RetryInfo = _message("quantd.client.wire.RetryInfo")
HealthCheckRequest = _message("quantd.client.wire.HealthCheckRequest")
HealthCheckResponse = _message("quantd.client.wire.HealthCheckResponse")
