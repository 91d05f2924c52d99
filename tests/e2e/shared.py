"""Shared memory for the tests: a folder in /dev/shm, files in it, and requests that name them."""

import os
import shutil
import tempfile
from pathlib import Path

from support import FLOAT, pb, tensor, tensor_pb2


class Folder:
    """A directory in memory that is removed after the tests."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="quantd-e2e-", dir="/dev/shm"))
        self.flag = f"--shared_memory_dir={self.path}"

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name, content=b"", size=None, offset=0):
        """Makes a file with the content at the offset."""
        (self.path / name).unlink(missing_ok=True)
        descriptor = os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o600)
        size = offset + len(content) if size is None else size
        if size:
            os.posix_fallocate(descriptor, 0, size)
        os.pwrite(descriptor, content, offset)
        os.close(descriptor)

    def read(self, name, offset=0, size=-1):
        with open(self.path / name, "rb") as file:
            file.seek(offset)
            return file.read(size)


def reference(region, byte_size, offset=0):
    return tensor_pb2.SharedMemoryReference(region=region, offset=offset, byte_size=byte_size)


def shared_tensor(region, shape, byte_size, offset=0, data_type=FLOAT):
    return tensor_pb2.Tensor(data_type=data_type, shape=shape, shared_memory=reference(region, byte_size, offset))


def shared_quantize(region="x", elements=4, output=None, scale=0.5, offset=0, **fields):
    """Quantize of FLOAT elements in a region; output: a region for y."""
    x = shared_tensor(region, [elements], 4 * elements, offset)
    output = None if output is None else reference(output, elements)
    return pb.QuantizeRequest(x=x, scale=tensor(scale), output=output, **fields)
