"""The installed wheel loads its own libraries, none of the system's, and names their licences."""

import pathlib
from importlib import metadata

import numpy as np

import quantd
import quantd_core

assert quantd.calibrate(np.ones(3, np.float32)).elements == 3
installed = pathlib.Path(quantd_core.__file__).resolve().parents[1]
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
for library in ("libtbb", "libhwy", "libabsl", "libre2"):
    paths = [path for path in loaded if pathlib.PurePath(path).name.startswith(library)]
    assert any(path.startswith(str(installed)) for path in paths), f"{library} is loaded from {paths}"
licences = {pathlib.PurePath(str(file)).stem for file in metadata.files("quantd-core") if "licenses" in str(file)}
assert licences >= {"quantd", "oneTBB", "highway", "abseil", "nanobind", "re2", "nlohmann-json"}, licences
