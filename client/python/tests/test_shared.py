"""Shared tensors: their files, and their use in place of arrays. Against a real server: tests/e2e."""

import fcntl
import os

import numpy as np
import pytest

import quantd
from raw_server import Quantd

X = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 300.0]], np.float32)


@pytest.fixture()
def client(tmp_path):
    server = Quantd(f"--shared_memory_dir={tmp_path}")
    with quantd.Client(server.address, timeout=30) as made:
        yield made
    server.stop()


@pytest.fixture()
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QUANTD_SHARED_MEMORY_DIR", str(tmp_path))
    yield tmp_path
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_all_there_and_locked(client, folder):
    with client.shared(X) as x:
        (file,) = folder.iterdir()
        assert file.name == x.region and file.name.startswith(f"quantd-{os.getpid()}-")
        status = file.stat()
        assert status.st_size == X.nbytes and status.st_blocks > 0 and status.st_mode & 0o777 == 0o660
        with open(file, "r+b") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert file.read_bytes() == X.tobytes()
        assert x.shape == X.shape and x.dtype == X.dtype


def test_in_place_of_arrays(client, folder):
    with client.shared(X) as x, client.shared(np.float32(0.5)) as scale, client.shared_empty(X.shape, "int8") as y:
        answer = client.quantize(x, scale, output_type="int8", out=y)
        np.testing.assert_array_equal(answer.y, client.quantize(X, 0.5, output_type="int8").y)
        assert np.shares_memory(answer.y, y.array())
        np.testing.assert_array_equal(client.dequantize(y, scale).y, client.dequantize(answer.y, 0.5).y)
        with client.stream() as stream:
            assert np.shares_memory(stream.dynamic_quantize(x, output_type="int8", out=y).result(30).y, y.array())


def test_the_clients_directory_wins(address, tmp_path, folder):
    own = tmp_path.parent / (tmp_path.name + "-own")
    own.mkdir()
    with quantd.Client(address, shared_memory_dir=str(own)) as client, client.shared(X):
        assert len(list(own.iterdir())) == 1 and not list(folder.iterdir())


def test_wrong_arguments(client, folder, monkeypatch):
    with client.shared_empty((2,), "float32") as x:
        with pytest.raises(ValueError, match="this tensor"):
            x.write(np.zeros(3, np.float32))
        with pytest.raises(ValueError, match="this tensor"):
            x.write(np.zeros(2, np.int8))
    with pytest.raises(ValueError, match="closed"):
        x.array()
    with pytest.raises(TypeError, match="float64"):
        client.shared(np.zeros(3))
    monkeypatch.delenv("QUANTD_SHARED_MEMORY_DIR")
    with pytest.raises(ValueError, match="QUANTD_SHARED_MEMORY_DIR"):
        client.shared(X)
