"""What the tests of stored parameters share: a server with a folder, short ways to write a set, and canonical bytes made by
Python."""

import hashlib

import grpc
import numpy as np
from support import parameters_pb2 as pp
from support import parameters_pb2_grpc, pb, tensor, tensor_pb2

UINT8, INT8, INT32, UINT4 = 2, 3, 6, 21
RANGES, UNIT = 1, 2
X = tensor(np.linspace(-3, 3, 12, dtype=np.float32).reshape(4, 3))


def stub_of(server, address=None):
    return parameters_pb2_grpc.ParametersServiceStub(server.channel(address))


def put(server, name, parameters, timeout=20):
    """The reference of a set that was stored."""
    request = pp.PutParametersRequest(name=name, parameters=parameters)
    return stub_of(server).PutParameters(request, timeout=timeout).reference


def quantize_set(scale=0.5, **fields):
    return pp.ParameterSet(quantize=pb.QuantizeRequest(scale=tensor(scale), **fields))


def embeddings_set(**fields):
    return pp.ParameterSet(quantize_embeddings=pb.QuantizeEmbeddingsRequest(**fields))


def int8(values, data_type=INT8):
    values = np.asarray(values, np.int8)
    return tensor_pb2.Tensor(data_type=data_type, shape=values.shape, raw_data=values.tobytes())


def code_of(call, *arguments, **keywords):
    """The status and the message of a call that fails."""
    try:
        call(*arguments, timeout=20, **keywords)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    raise AssertionError("the call succeeded")


def file_of(folder, reference):
    name, digits = reference.split("@sha256:")
    return folder / f"{name}@{digits}.quantd"


def check_file(folder, reference):
    """A file's hash is the one in its name, and Python's protobuf writes the same bytes."""
    data = file_of(folder, reference).read_bytes()
    assert hashlib.sha256(data).hexdigest() == reference.split("@sha256:")[1]
    assert pp.ParameterSet.FromString(data).SerializeToString(deterministic=True) == data
    return data
