"""The Python client's example runs against the real server."""

import subprocess
import sys

from conftest import ROOT


def test_the_example_runs(address):
    example = ROOT / "client" / "python" / "examples" / "quantize_weights.py"
    run = subprocess.run([sys.executable, example, "--address", address], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "NVFP4" in run.stdout and "a wrong scale: scale: " in run.stdout
