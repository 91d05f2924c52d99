"""Runs fork_cases.py in a separate process: once gRPC's asyncio has run, as in the other tests' process, children of fork cannot use
gRPC."""

import os
import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).resolve().parent / "fork_cases.py"


def test_children_of_fork():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    print(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
