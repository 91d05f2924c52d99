"""Server reflection: what grpcurl and the like ask."""

from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from support import SERVICE


def ask(server, **request):
    stub = reflection_pb2_grpc.ServerReflectionStub(server.channel())
    requests = iter([reflection_pb2.ServerReflectionRequest(**request)])
    return next(stub.ServerReflectionInfo(requests, timeout=5))


def test_list(server):
    names = {service.name for service in ask(server, list_services="").list_services_response.service}
    assert {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= names


def files_of(answer):
    return [descriptor_pb2.FileDescriptorProto.FromString(f) for f in answer.file_descriptor_response.file_descriptor_proto]


def test_every_method_of_the_service_can_be_resolved(server):
    files = files_of(ask(server, file_containing_symbol=SERVICE))
    methods = {method.name for file in files for service in file.service for method in service.method}
    assert methods == {"Quantize", "Dequantize", "DynamicQuantize", "QuantizeEmbeddings", "Stream", "GetServerInfo"}


def test_the_descriptor_of_health_can_be_resolved(server):
    files = files_of(ask(server, file_containing_symbol="grpc.health.v1.Health"))
    assert files[0].name == "grpc/health/v1/health.proto"
    assert {method.name for method in files[0].service[0].method} == {"Check", "Watch"}

