"""Server reflection: the questions of grpcurl and similar tools, in both versions, which have the same messages."""

import grpc
import pytest
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection_pb2

from support import SERVICE, quantize


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


def test_the_details_of_an_error_can_be_resolved_by_reflection_alone(server, ask):
    with pytest.raises(grpc.RpcError) as raised:
        server.stub.Quantize(quantize([1, 2, 3], scale=[1, 2], axis=0), timeout=5)
    details = dict(raised.value.trailing_metadata())["grpc-status-details-bin"]

    def resolve(name):
        # A separate pool, so that google.rpc in this process does not help.
        pool = descriptor_pool.DescriptorPool()
        for file in reversed(files_of(ask(file_containing_symbol=name))):
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    found = {}
    for detail in resolve("google.rpc.Status").FromString(details).details:
        packed = any_pb2.Any(type_url=detail.type_url, value=detail.value)
        found[packed.TypeName()] = resolve(packed.TypeName()).FromString(packed.value)
    assert found["google.rpc.BadRequest"].field_violations[0].field == "scale"
    assert found["google.rpc.ErrorInfo"].domain == "quantd"
    retry = resolve("google.rpc.RetryInfo")()
    retry.retry_delay.nanos = 5
    assert retry.SerializeToString() == b"\x0a\x02\x10\x05"
