"""Starts the server under test, provides clients, and ends the run with a summary by source.

The server is QUANTD_BUILD_DIR's server/quantd (default build/release), on ports that it picks; QUANTD_ADDRESS names a
running one instead. With --engine=local there is no server: quantd.local(), the engine in this process, answers
everything. QUANTD_SEED repeats a run's random tensors.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
import compare  # noqa: E402
import generate  # noqa: E402
import quantd  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--engine", choices=("server", "local"), default="server", help="who answers: a server, or this process")


def is_local(config):
    return config.getoption("--engine") == "local"


@pytest.fixture(scope="session")
def address(request, tmp_path_factory):
    if is_local(request.config):
        pytest.skip("is about messages, of which the engine in the process has none")
    if "QUANTD_ADDRESS" in os.environ:
        yield os.environ["QUANTD_ADDRESS"]
        return
    build = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release")
    binary = build / "server" / "quantd"
    assert binary.exists(), f"{binary} is not there: build it, or set QUANTD_BUILD_DIR"
    folder = tmp_path_factory.mktemp("server")
    ready = folder / "ready.json"
    flags = ["--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0", f"--ready_file={ready}"]
    with open(folder / "log", "w") as log:
        process = subprocess.Popen([str(binary), *flags], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                where = json.loads(ready.read_text())["grpc"][0]
                break
            except (OSError, ValueError, KeyError):
                pass
            assert process.poll() is None, f"the server ended:\n{(folder / 'log').read_text()}"
            assert time.monotonic() < deadline, f"the server was not ready in 20 s:\n{(folder / 'log').read_text()}"
            time.sleep(0.02)
        yield where
        assert process.poll() is None, f"the server died during the tests:\n{(folder / 'log').read_text()[-4000:]}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def client(request):
    if is_local(request.config):
        with quantd.local(timeout=60) as c:
            yield c
        return
    with quantd.Client(request.getfixturevalue("address"), timeout=60) as c:
        yield c


def pytest_report_header(config):
    return f"quantd conformance: QUANTD_SEED={generate.SEED}, engine: {config.getoption('--engine')}"


def pytest_terminal_summary(terminalreporter):
    for source, (cases, elements) in compare.CASES.items():
        terminalreporter.write_line(f"conformance: {cases} cases, {elements} elements: {source}")
