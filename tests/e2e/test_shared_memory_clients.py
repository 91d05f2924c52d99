"""The Python and the C++ client with tensors in shared memory, against a running server."""

import gc
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from shared import Folder
from support import ROOT

EXAMPLE = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client" / "cpp" / "client_shared_memory_example"


def load_client():
    """The installed client, under a name that differs from the stubs' here."""
    roots = [Path(folder) / "quantd" for folder in sys.path]
    root = next(root for root in roots if (root / "contract.binpb").exists())
    spec = importlib.util.spec_from_file_location("quantd_client", root / "__init__.py", submodule_search_locations=[str(root)])
    module = importlib.util.module_from_spec(spec)
    sys.modules["quantd_client"] = module
    spec.loader.exec_module(module)
    return module, root.parent


quantd, INSTALLED = load_client()
X = np.random.default_rng(11).standard_normal((64, 1000)).astype(np.float32)


@pytest.fixture(scope="module")
def folder():
    made = Folder()
    yield made
    assert not list(made.path.glob("quantd-*")), "a client left something"
    made.remove()


@pytest.fixture(scope="module")
def server_flags(folder):
    return (folder.flag,)


@pytest.fixture
def client(server, folder):
    with quantd.Client(server.address, timeout=30, shared_memory_dir=str(folder.path)) as made:
        yield made


def test_all_three_and_back(client):
    with client.shared(X) as x, client.shared_empty(X.shape, "int8") as y, client.shared_empty(X.shape, "float32") as back:
        made = client.dynamic_quantize(x, output_type="int8", axis=0, out=y)
        want = client.dynamic_quantize(X, output_type="int8", axis=0)
        np.testing.assert_array_equal(made.y, want.y)
        np.testing.assert_array_equal(made.scale, want.scale)
        assert np.shares_memory(made.y, y.array())
        client.dequantize(y, made.scale, made.zero_point, axis=0, out=back)
        np.testing.assert_array_equal(back.array(), client.dequantize(want.y, want.scale, want.zero_point, axis=0).y)
        again = client.quantize(x, made.scale, made.zero_point, axis=0, out=y)
        np.testing.assert_array_equal(again.y, client.quantize(X, made.scale, made.zero_point, axis=0).y)
        # Only one side is shared, and the next call sees what was written to a view.
        x.array()[:] = 1
        np.testing.assert_array_equal(client.quantize(x, 0.5).y, np.full(X.shape, 2, np.uint8))
        x.write(X)
        np.testing.assert_array_equal(client.quantize(X, 0.5, out=y).y, client.quantize(x, 0.5).y)


@pytest.mark.parametrize("kind", ["int4", "uint2", "float4_e2m1fn", "float8_e4m3fn", "uint16"])
def test_every_width(client, kind):
    with client.shared(X) as x, client.shared_empty(X.shape, kind) as y:
        want = client.quantize(X, 0.5, output_type=kind)
        got = client.quantize(x, 0.5, output_type=kind, out=y)
        assert got.y.dtype == want.y.dtype == y.dtype
        np.testing.assert_array_equal(got.y.view(np.uint8), want.y.view(np.uint8))
        np.testing.assert_array_equal(y.array().view(np.uint8), want.y.view(np.uint8))
        with client.shared(want.y) as codes:
            np.testing.assert_array_equal(client.dequantize(codes, 0.5).y, client.dequantize(want.y, 0.5).y)


def test_scales_and_zero_points_and_empty_tensors(client):
    scale, zero = np.linspace(0.1, 1, 1000, dtype=np.float32), np.arange(1000, dtype=np.int32).astype(np.uint8)
    with client.shared(scale) as s, client.shared(zero) as z, client.shared(X) as x:
        np.testing.assert_array_equal(client.quantize(x, s, z, axis=1).y, client.quantize(X, scale, zero, axis=1).y)
    with client.shared(np.empty((0, 3), np.float32)) as x, client.shared_empty((0, 3), "uint8") as y:
        assert client.quantize(x, 1.0, out=y).y.shape == (0, 3)
    with client.shared(np.float32(3)) as x:
        assert client.quantize(x, 1.0).y == 3
    assert client.shared(ml_dtypes.bfloat16(2)).array() == 2


def test_streams(client):
    with client.shared(X) as x, client.stream() as stream:
        outs = [client.shared_empty(X.shape, "uint8") for _ in range(20)]
        futures = [stream.quantize(x, 0.1 * (i + 1), out=out) for i, out in enumerate(outs)]
        for i, future in enumerate(futures):
            np.testing.assert_array_equal(future.result(30).y, client.quantize(X, 0.1 * (i + 1)).y)
            outs[i].close()


def test_errors(client, server, start):
    with client.shared(X) as x, client.shared_empty((10,), "uint8") as small:
        with pytest.raises(quantd.InvalidArgumentError) as caught:
            client.quantize(x, 0.5, out=small)
        assert caught.value.field == "output.byte_size" and "10" in str(caught.value)
        with pytest.raises(quantd.InvalidArgumentError, match="overlaps"):
            client.quantize(x, 0.5, out=x)
        with pytest.raises(TypeError, match="out is ndarray"):
            client.quantize(x, 0.5, out=np.empty(3))
        os.truncate(client._shared_memory_dir + "/" + x.region, 100)
        with pytest.raises(quantd.InvalidArgumentError, match="has 100 bytes"):
            client.quantize(x, 0.5)
        with quantd.Client(start().address, timeout=30) as other, pytest.raises(quantd.QuantdError) as caught:
            other.quantize(small, 0.5)
        assert caught.value.code.name == "UNIMPLEMENTED" and caught.value.reason == "NO_SHARED_MEMORY"
    with pytest.raises(ValueError, match="closed"):
        client.quantize(x, 0.5)
    with pytest.raises(ValueError, match="QUANTD_SHARED_MEMORY_DIR"):
        quantd.Client(server.address).shared(X)


def test_files_go_when_they_are_closed_dropped_or_out_of_use(client, folder):
    def files():
        return len(list(folder.path.glob("quantd-*")))

    with client.shared(X) as x:
        view = x.array()
        assert files() == 1
        descriptors = len(os.listdir("/proc/self/fd"))
    assert files() == 0
    np.testing.assert_array_equal(view, X)
    x.close()
    dropped = client.shared(X)
    assert files() == 1
    del dropped
    gc.collect()
    assert files() == 0
    for _ in range(300):
        with client.shared(X[:1]):
            pass
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1
    with pytest.raises(ValueError):
        client.shared_empty((3,), "float32").write(np.zeros(4, np.float32))
    with pytest.raises(OSError):
        client.shared_empty((1 << 50,), "float32")
    gc.collect()
    assert files() == 0


def test_files_go_with_their_process(folder, server):
    """A client removes its files when it ends; if it was killed, the next server removes them."""
    script = """
        import numpy, os, quantd, signal, sys
        client = quantd.Client(sys.argv[1], timeout=30)
        x = client.shared(numpy.ones((1000, 1000), numpy.float32))
        assert client.quantize(x, 0.5).y.sum() == 2000000
        if os.fork() == 0:
            sys.exit(0)  # a child has no file
        os.wait()
        assert os.path.exists(os.path.join(os.environ["QUANTD_SHARED_MEMORY_DIR"], x.region))
        print(x.region)
        if sys.argv[2] == "kill":
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    environment = {**os.environ, "QUANTD_SHARED_MEMORY_DIR": str(folder.path), "PYTHONPATH": str(INSTALLED)}
    for end, code in (("exit", 0), ("kill", -signal.SIGKILL)):
        command = [sys.executable, "-c", textwrap.dedent(script), server.address, end]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == code, done.stderr
        left = folder.path / done.stdout.strip()
        assert left.exists() == (end == "kill")
    left.unlink()


def test_the_cpp_example(server, folder):
    done = subprocess.run([str(EXAMPLE), server.address, str(folder.path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "0 -> 0" and lines[1].startswith("0.841471 -> ") and lines[4].endswith("1048576 bytes in region quantd-")
    done = subprocess.run([str(EXAMPLE), server.address, "/no/such"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "NOT_FOUND" in done.stderr
