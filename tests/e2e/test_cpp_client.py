"""The example of the C++ client, against a running server and none."""

import os
import subprocess

from support import ROOT

EXAMPLE = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client" / "cpp" / "client_example"


def run(address):
    done = subprocess.run([str(EXAMPLE), address], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


def test_the_example_quantizes(server):
    code, out, err = run(server.address)
    assert (code, err) == (0, "")
    # scale = 4.5 / 254; zero point = rint(-127 + 1.5 / scale) = -42
    assert out.splitlines()[:4] == ["-1.5 -> -127", "0 -> -42", "0.25 -> -28", "3 -> 127"]
    assert out.splitlines()[4].startswith("scale 0.0177165, SQNR ")


def test_the_example_says_why_not():
    code, out, err = run("127.0.0.1:1")
    assert (code, out) == (1, "") and "UNAVAILABLE" in err
