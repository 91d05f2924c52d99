"""quantize_static with quantd's calibration: MinMax equals onnxruntime's bit for bit, and the state does not grow with the data."""

import contextlib
import io

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime import quantization
from onnxruntime.quantization import CalibrationMethod, QuantType

import digits
import quantd
from quantd.onnxruntime import Calibrater, quantize_static

METHODS = ("min_max", "percentile", "entropy", "mse")
(X, _), _ = digits.data()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("digits") / "model.onnx")
    digits.make(path)
    return path


def parameters(path):
    """Scales and zero points of a quantized model, by name: type and bits."""
    return {
        t.name: (t.data_type, numpy_helper.to_array(t).tobytes()) for t in onnx.load(path).graph.initializer
        if t.name.endswith(("_scale", "_zero_point"))
    }


def theirs(model, path, reader, method=CalibrationMethod.MinMax, **options):
    with contextlib.redirect_stdout(io.StringIO()):
        quantization.quantize_static(model, path, reader, calibrate_method=method, **options)
    return str(path)


def ours(model, path, reader, **options):
    return str(path), quantize_static(model, path, reader, **options)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QUInt8, QuantType.QInt8, QuantType.QUInt16, QuantType.QInt16], ids=str)
def test_min_max_is_onnxruntimes_bit_for_bit(model, tmp_path, kind, symmetric):
    options = dict(activation_type=kind, weight_type=QuantType.QInt8, extra_options={"ActivationSymmetric": symmetric})
    wanted = parameters(theirs(model, tmp_path / "theirs.onnx", digits.Reader(X), **options))
    path, _ = ours(model, tmp_path / "ours.onnx", digits.Reader(X), method="min_max", **options)
    assert len(wanted) >= 8 and parameters(path) == wanted
    assert digits.accuracy(path) == digits.accuracy(str(tmp_path / "theirs.onnx"))


def test_formats_and_models_in_memory(model, tmp_path):
    for form in (quantization.QuantFormat.QDQ, quantization.QuantFormat.QOperator):
        options = dict(quant_format=form, activation_type=QuantType.QUInt8)
        wanted = parameters(theirs(model, tmp_path / "theirs.onnx", digits.Reader(X), **options))
        path, _ = ours(onnx.load(model), tmp_path / "ours.onnx", digits.Reader(X), method="min_max", **options)
        assert parameters(path) == wanted


@pytest.mark.parametrize("method", METHODS)
def test_accuracy(model, tmp_path, method):
    path, _ = ours(model, tmp_path / "q.onnx", digits.Reader(X), method=method, activation_type=QuantType.QUInt8)
    assert digits.accuracy(path) >= digits.accuracy(model) - 1


def test_the_calibrater_alone(model, tmp_path):
    """Used like onnxruntime's own; its results go where theirs go."""
    calibrater = Calibrater(model, ["Gemm"], str(tmp_path / "augmented.onnx"), symmetric=True, method="percentile", percentile=99)
    calibrater.augment_graph()
    calibrater.create_inference_session()
    with pytest.raises(ValueError, match="no data was collected"):
        calibrater.collect_data(digits.Reader(X, batches=0))
    calibrater.collect_data(digits.Reader(X, batches=3))
    calibrater.collect_data(digits.Reader(X, batches=3))
    found = calibrater.compute_data()
    assert set(found.keys()) == {"f", "g", "h", "logits"} == set(calibrater.states)
    low, high = found["logits"].range_value
    assert low == -high and low.dtype == np.float32
    with quantd.local() as client:
        wanted = client.calibrate(states=calibrater.states["logits"], method="percentile", percentile=99, symmetry="symmetric")
        assert wanted.range.tolist() == [low, high] and wanted.elements == 2 * 180 * 10


def test_what_is_refused(model, tmp_path):
    path = tmp_path / "q.onnx"
    with pytest.raises(ValueError, match="activation_type is .*QFLOAT8E4M3FN"):
        quantize_static(model, path, digits.Reader(X), activation_type=QuantType.QFLOAT8E4M3FN)
    with pytest.raises(TypeError, match="calibrate_method can't be given"):
        quantize_static(model, path, digits.Reader(X), calibrate_method=CalibrationMethod.MinMax)
    with pytest.raises(TypeError, match="SmoothQuant"):
        quantize_static(model, path, digits.Reader(X), extra_options={"SmoothQuant": True})
    with pytest.raises(ValueError, match="method is 'kl'"):
        quantize_static(model, path, digits.Reader(X), method="kl")
    x = X.copy()
    x[3] = np.nan
    with pytest.raises(quantd.InvalidArgumentError, match="nan"):
        quantize_static(model, path, digits.Reader(x))
    assert not path.exists()
    quantize_static(model, path, digits.Reader(x), non_finite="ignore")
