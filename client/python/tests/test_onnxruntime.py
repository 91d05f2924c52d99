"""quantd.onnxruntime with a server: the same model as in process, or as onnxruntime's own calibration."""

import contextlib
import io
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python-core" / "tests"))
quantization = pytest.importorskip("onnxruntime.quantization")
pytest.importorskip("sklearn")
import digits  # noqa: E402
from quantd.onnxruntime import quantize_static  # noqa: E402


@pytest.fixture(scope="module")
def server(large):
    if "calibrate" not in large.info().extensions:
        pytest.skip("this server has no Calibrate")
    return large


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("digits") / "model.onnx")
    digits.make(path)
    return path


def test_min_max_is_onnxruntimes(server, model, tmp_path):
    (x, _), _ = digits.data()
    options = dict(activation_type=quantization.QuantType.QUInt8)
    with contextlib.redirect_stdout(io.StringIO()):
        quantization.quantize_static(model, tmp_path / "theirs.onnx", digits.Reader(x), **options)
    states = quantize_static(model, tmp_path / "ours.onnx", digits.Reader(x), method="min_max", client=server, **options)
    assert (tmp_path / "ours.onnx").read_bytes() == (tmp_path / "theirs.onnx").read_bytes() and len(states) == 7


def test_the_process_makes_the_same(server, model, tmp_path):
    pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")
    (x, _), _ = digits.data()
    for method in ("percentile", "entropy", "mse"):
        found = []
        for client in (server, None):
            states = quantize_static(model, tmp_path / "q.onnx", digits.Reader(x, batches=3), method=method, client=client)
            found.append((states, (tmp_path / "q.onnx").read_bytes()))
        assert found[0] == found[1]
