"""A small classifier of scikit-learn's digits, as an ONNX model, and batches for its calibration."""

import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

FILTERS, KERNEL = 12, 3


def _convolved(x, weights, bias):
    windows = np.lib.stride_tricks.sliding_window_view(x[:, 0], (KERNEL, KERNEL), axis=(1, 2))
    return np.maximum(np.einsum("nhwij,cij->nchw", windows, weights[:, 0]) + bias[:, None, None], 0)


def data():
    """Images of [N, 1, 8, 8] and digits, to train on and to test with."""
    digits = load_digits()
    x, y = digits.images.astype(np.float32)[:, None] / 16, digits.target
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[:1200], order[1200:]
    return (x[train], y[train]), (x[test], y[test])


def make(path):
    """Writes the model: a convolution with random filters, and two layers that are trained on its output."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((FILTERS, 1, KERNEL, KERNEL)).astype(np.float32)
    bias = rng.standard_normal(FILTERS).astype(np.float32) * np.float32(0.1)
    (x, y), _ = data()
    net = MLPClassifier((48,), max_iter=40, random_state=0, tol=0, n_iter_no_change=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # longer training would improve it
        net.fit(_convolved(x, weights, bias).reshape(len(x), -1), y)
    tensors = {"w0": weights, "b0": bias}
    for i, (w, b) in enumerate(zip(net.coefs_, net.intercepts_), 1):
        tensors |= {f"w{i}": w.astype(np.float32), f"b{i}": b.astype(np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c"], "conv"), helper.make_node("Relu", ["c"], ["r"], "relu0"),
        helper.make_node("Flatten", ["r"], ["f"], "flatten"), helper.make_node("Gemm", ["f", "w1", "b1"], ["g"], "gemm1"),
        helper.make_node("Relu", ["g"], ["h"], "relu1"), helper.make_node("Gemm", ["h", "w2", "b2"], ["logits"], "gemm2")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "digits", [value("x", onnx.TensorProto.FLOAT, ["n", 1, 8, 8])], [value("logits", onnx.TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(tensor, name) for name, tensor in tensors.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, path)


class Reader:
    """Batches of x, like onnxruntime's CalibrationDataReader."""

    def __init__(self, x, size=60, batches=None, order=None):
        self._batches = [x[i : i + size] for i in range(0, len(x), size)]
        if order is not None:
            self._batches = [self._batches[i] for i in order]
        self._left, self._next = len(self._batches) if batches is None else batches, 0

    def get_next(self):
        if not self._left:
            return None
        self._left, self._next = self._left - 1, self._next + 1
        return {"x": self._batches[(self._next - 1) % len(self._batches)]}


def accuracy(path):
    """The percentage of 597 digits that it gets right."""
    import onnxruntime

    _, (x, y) = data()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return 100 * float((session.run(None, {"x": x})[0].argmax(axis=1) == y).mean())
