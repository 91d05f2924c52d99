"""Server reflection: the questions of grpcurl and similar tools, in both versions, which have the same messages."""

import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2

from support import SERVICE


@pytest.fixture(params=["v1", "v1alpha"])
def ask(server, request):
    """ask(file_by_filename=..., ...): the answer."""
    method = server.channel().stream_stream(
        f"/grpc.reflection.{request.param}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    return lambda **question: next(method(iter([reflection_pb2.ServerReflectionRequest(**question)]), timeout=5))


def test_list(ask):
    names = {service.name for service in ask(list_services="").list_services_response.service}
    assert {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"} <= names


def files_of(answer):
    return [descriptor_pb2.FileDescriptorProto.FromString(f) for f in answer.file_descriptor_response.file_descriptor_proto]


def test_every_method_of_the_service_can_be_resolved(ask):
    files = files_of(ask(file_containing_symbol=SERVICE))
    methods = {method.name for file in files for service in file.service for method in service.method}
    assert methods == {"Quantize", "Dequantize", "DynamicQuantize", "QuantizeEmbeddings", "Stream", "GetServerInfo"}
