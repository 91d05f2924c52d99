"""Runs with nothing but the wheel, numpy and ml_dtypes: the module works, and loads only its own libraries."""

import importlib.util
import pathlib
import sys
from importlib import metadata

import numpy as np

import quantd_core

for name in ("quantd", "grpc", "google.protobuf"):
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        found = None
    assert found is None, f"{name} is installed here: this proves nothing"

x = np.arange(-8, 8, dtype=np.float32).reshape(2, 8)
result = quantd_core.dynamic_quantize(x, output_type="int4", axis=0)
back = quantd_core.dequantize(result.y, result.scale, result.zero_point, axis=0).y
assert np.abs(back - x).max() <= 0.6, back
large = quantd_core.quantize(np.ones(1 << 22, np.float32), 0.5).y
assert (large == 2).all()
found = quantd_core.calibrate([x[:1], x[1:]], output_type="int8")
assert found.elements == 16 and quantd_core.quantize(x, **found.quantize_arguments()).y.dtype == np.int8
try:
    quantd_core.quantize(x, [1.0, 2.0, 3.0])
except quantd_core.InvalidArgumentError as error:
    assert error.field == "scale" and error.code is quantd_core.StatusCode.INVALID_ARGUMENT
else:
    raise AssertionError("a wrong scale was taken")

installed = pathlib.Path(quantd_core.__file__).resolve().parents[1]
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
for library in ("libtbb", "libhwy", "libabsl", "libre2"):
    paths = [path for path in loaded if pathlib.PurePath(path).name.startswith(library)]
    assert paths and all(path.startswith(str(installed)) for path in paths), f"{library} is loaded from {paths}"
licences = {pathlib.PurePath(str(file)).stem for file in metadata.files("quantd-core") if "licenses" in str(file)}
assert licences >= {"quantd", "oneTBB", "highway", "abseil", "nanobind", "re2", "nlohmann-json"}, licences
print(f"quantd_core {quantd_core.__version__} on {quantd_core.info().target}, Python {sys.version.split()[0]}")
