"""The installed wheel loads its own libraries, none of the system's, and names their licences."""

import pathlib
import subprocess
import sys
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
command = pathlib.Path(sys.executable).with_name("quantctl")
assert quantd_core.__version__ in subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
linked = subprocess.run(["ldd", pathlib.Path(quantd_core.__file__).with_name("bin") / "quantctl"], check=True, capture_output=True, text=True).stdout
assert all("quantd_core.libs" in line for line in linked.splitlines() if "libgrpc" in line or "libabsl" in line), linked
licences = {pathlib.PurePath(str(file)).stem for file in metadata.files("quantd-core") if "licenses" in str(file)}
inside = ("quantd", "oneTBB", "highway", "abseil", "nanobind", "re2", "nlohmann-json", "gRPC", "protobuf", "c-ares", "OpenSSL", "zlib", "CLI11")
assert licences >= set(inside), licences
