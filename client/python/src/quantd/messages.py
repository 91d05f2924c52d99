"""The contract's message classes, made from the descriptors that were compiled on installation (contract.binpb).

They are in a descriptor pool of their own, so they do not clash with anything else in the process. Programs rarely
need them, because `Client` uses numpy. They are for tests and for messages written by hand.
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


def message(name: str) -> Any:
    """The class of a message of contract.binpb."""
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))


Tensor: Any = message("quantd.v1.Tensor")
FloatValues: Any = message("quantd.v1.FloatValues")
IntValues: Any = message("quantd.v1.IntValues")
SharedMemoryReference: Any = message("quantd.v1.SharedMemoryReference")
QuantizeRequest: Any = message("quantd.v1.QuantizeRequest")
QuantizeResponse: Any = message("quantd.v1.QuantizeResponse")
DequantizeRequest: Any = message("quantd.v1.DequantizeRequest")
DequantizeResponse: Any = message("quantd.v1.DequantizeResponse")
DynamicQuantizeRequest: Any = message("quantd.v1.DynamicQuantizeRequest")
DynamicQuantizeResponse: Any = message("quantd.v1.DynamicQuantizeResponse")
QuantizeEmbeddingsRequest: Any = message("quantd.v1.QuantizeEmbeddingsRequest")
QuantizeEmbeddingsResponse: Any = message("quantd.v1.QuantizeEmbeddingsResponse")
StreamRequest: Any = message("quantd.v1.StreamRequest")
StreamResponse: Any = message("quantd.v1.StreamResponse")
GetServerInfoRequest: Any = message("quantd.v1.GetServerInfoRequest")
GetServerInfoResponse: Any = message("quantd.v1.GetServerInfoResponse")

# The methods of the operations, by the names of Stream's fields, and their messages.
METHODS: Dict[str, str] = {
    "quantize": "Quantize",
    "dequantize": "Dequantize",
    "dynamic_quantize": "DynamicQuantize",
    "quantize_embeddings": "QuantizeEmbeddings",
}
REQUESTS: Dict[str, Any] = {operation: message(f"quantd.v1.{name}Request") for operation, name in METHODS.items()}
ANSWERS: Dict[str, Any] = {operation: message(f"quantd.v1.{name}Response") for operation, name in METHODS.items()}

Status: Any = message("google.rpc.Status")
BadRequest: Any = message("google.rpc.BadRequest")
ErrorInfo: Any = message("google.rpc.ErrorInfo")
RetryInfo: Any = message("google.rpc.RetryInfo")
HealthCheckRequest: Any = message("grpc.health.v1.HealthCheckRequest")
HealthCheckResponse: Any = message("grpc.health.v1.HealthCheckResponse")
