"""onnxruntime.quantization.quantize_static with its own calibration and with quantd's, on a small classifier of scikit-learn's digits: the quality
of the quantized model, and the time and memory of calibration, by the number of batches.

    python tests/bench/onnxruntime_calibration.py [--batches=20,200,1000]

Needs onnx, onnxruntime, scikit-learn, quantd and quantd-core (./tests/run.sh engine makes such an environment: build/venv-engine).
Every row is a process of its own. Accuracy is that on 597 digits that were not trained on; SQNR compares the model's outputs with those of the
float model; time and memory are those of calibration: seconds, and growth of the process's peak (ru_maxrss).
"""

import argparse
import contextlib
import io
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "client" / "python-core" / "tests"))

OURS = ("min_max", "percentile", "entropy", "mse")
THEIRS = ("MinMax", "Percentile", "Entropy")
TYPES = ("QUInt8", "QInt8 symmetric", "QUInt4")


def outliers(x):
    """Calibration data in which one of 1,200 images has a pixel a hundred times too bright."""
    x = x.copy()
    x[7, 0, 3, 3] = 100
    return x


def logits(path, x):
    import onnxruntime

    plain = onnxruntime.SessionOptions()  # as the model is written: fused operators have no 4 bits
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, plain, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def quantized(model, package, method, kind, x, batches, path):
    """Writes the quantized model; returns the seconds and MiB that it took."""
    import digits
    import onnxruntime.quantization as theirs

    import quantd.onnxruntime as ours

    options = dict(activation_type=getattr(theirs.QuantType, kind.split()[0]),
                   extra_options={"ActivationSymmetric": kind.endswith("symmetric")})
    reader = digits.Reader(x, batches=batches)
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    if package == "quantd":
        ours.quantize_static(model, path, reader, method=method, **options)
    else:
        with contextlib.redirect_stdout(io.StringIO()):
            theirs.quantize_static(model, path, reader, calibrate_method=theirs.CalibrationMethod[method], **options)
    return time.monotonic() - begin, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def case(model, package, method, kind, data, batches):
    import digits

    logging.disable(logging.WARNING)
    (x, _), (test, digit) = digits.data()
    with tempfile.TemporaryDirectory() as folder:
        warm = str(Path(folder, "warm.onnx"))  # libraries are loaded, and the first session made
        quantized(model, package, method, kind, x, 1, warm)
        path = str(Path(folder, "q.onnx"))
        seconds, mib = quantized(model, package, method, kind, outliers(x) if data == "outlier" else x, batches, path)
        wanted, found = logits(model, test).astype(np.float64), logits(path, test).astype(np.float64)
        sqnr = 10 * np.log10((wanted**2).sum() / ((wanted - found) ** 2).sum())
        return dict(accuracy=100 * float((found.argmax(axis=1) == digit).mean()), sqnr=sqnr, seconds=seconds, mib=mib)


def measure(model, *arguments):
    done = subprocess.run([sys.executable, __file__, "--case", json.dumps([model, *arguments])], capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", default="20,200,1000")
    parser.add_argument("--case")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(case(*json.loads(options.case))))
        return
    import digits

    batches = [int(n) for n in options.batches.split(",")]
    packages = [("quantd", method) for method in OURS] + [("onnxruntime", method) for method in THEIRS]
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder, "model.onnx"))
        digits.make(model)
        print(f"float model: {digits.accuracy(model):.2f} %\n\naccuracy in %, and SQNR of the outputs in dB, of 20 batches")
        columns = [(kind, data) for kind in TYPES for data in ("clean", "outlier")]
        print("\n| calibration | " + " | ".join(f"{kind}, {data}" for kind, data in columns) + " |\n|---|" + "---|" * len(columns))
        for package, method in packages:
            found = [measure(model, package, method, kind, data, 20) for kind, data in columns]
            print(f"| {package} {method} | " + " | ".join(f"{row['accuracy']:.2f}, {row['sqnr']:.1f}" for row in found) + " |", flush=True)
        print("\nseconds and MiB of calibration, by batches of 60 images\n\n| calibration | "
              + " | ".join(f"{n} batches" for n in batches) + " |\n|---|" + "---|" * len(batches))
        for package, method in packages:
            found = [measure(model, package, method, "QUInt8", "clean", n) for n in batches]
            print(f"| {package} {method} | " + " | ".join(f"{row['seconds']:.2f} s, {row['mib']:.0f} MiB" for row in found) + " |", flush=True)


if __name__ == "__main__":
    main()
