"""What the tests share: the server as a process, the stubs of its protos, and short ways to write a request."""

import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import numpy as np
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parents[2]
# A sanitizer's build: its memory differs from the server's.
SANITIZED = "san" in os.environ.get("QUANTD_BUILD_DIR", "")
BINARY = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "server" / "quantd"
# The suites' own variables must not become the server's flags.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUANTD_")}
SERVICE = "quantd.v1.QuantizationService"


def _generate_stubs():
    """Python stubs of the project's protos, in a folder that is removed when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="quantd-stubs-")
    protos = ["quantd/v1/tensor.proto", "quantd/v1/quantization.proto", "grpc/health/v1/health.proto"]
    # grpc/health would hide the grpc package if it were a package: its files are imported by their own path.
    arguments = [f"-I{ROOT / 'proto'}", f"--python_out={folder.name}", f"--grpc_python_out={folder.name}", *protos]
    assert protoc.main(["protoc", *arguments]) == 0
    # A regular package, so that it is found before the Python client, which is also called quantd.
    Path(folder.name, "quantd", "__init__.py").touch()
    return folder


_STUBS = _generate_stubs()
sys.path.insert(0, _STUBS.name)
grpc.__path__.append(os.path.join(_STUBS.name, "grpc"))

from grpc.health.v1 import health_pb2, health_pb2_grpc  # noqa: E402,F401
from quantd.v1 import quantization_pb2 as pb  # noqa: E402
from quantd.v1 import quantization_pb2_grpc as pb_grpc  # noqa: E402
from quantd.v1 import tensor_pb2  # noqa: E402

FLOAT, UINT8, INT8, FLOAT16 = 1, 2, 3, 10


def tensor(array):
    """A FLOAT tensor of an array."""
    array = np.asarray(array, np.float32)
    return tensor_pb2.Tensor(data_type=FLOAT, shape=array.shape, raw_data=array.tobytes())


def quantize(array, scale=0.5, **fields):
    return pb.QuantizeRequest(x=tensor(array), scale=tensor(scale), **fields)


class Server:
    """A running quantd on ports that it picks."""

    def __init__(self, folder, *flags, listen=("127.0.0.1:0",), environment=None, descriptors=None, before=()):
        """`before`: a command that starts the command after it, such as `prlimit --nofile=80`."""
        self.folder = Path(folder)
        self.ready_file = self.folder / "ready.json"
        self.log_file = self.folder / "log"
        addresses = [f"--listen={address}" for address in listen]
        command = [str(BINARY), *addresses, "--http_listen=127.0.0.1:0", f"--ready_file={self.ready_file}", *flags]
        if descriptors is not None:
            before = ["prlimit", f"--nofile={descriptors}:{descriptors}", *before]
        assert BINARY.exists(), f"{BINARY} is not there: build it, or set QUANTD_BUILD_DIR"
        with open(self.log_file, "w") as log:
            self.process = subprocess.Popen([*before, *command], stdout=log, stderr=log, env={**ENVIRONMENT, **(environment or {})})
        self.channels = []
        self._wait_until_ready()
        self.address = self.ready["grpc"][0]
        self.http = self.ready["http"]
        self.stub = pb_grpc.QuantizationServiceStub(self.channel())

    def _wait_until_ready(self):
        deadline = time.monotonic() + 20
        while not self.ready_file.exists():
            assert self.process.poll() is None, f"the server ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"not ready in 20 s:\n{self.log()}"
            time.sleep(0.01)
        self.ready = json.loads(self.ready_file.read_text())

    def log(self):
        return self.log_file.read_text()

    def channel(self, address=None):
        """A connection of its own, without limits for messages."""
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        channel = grpc.insecure_channel(address or self.address, options=options)
        self.channels.append(channel)
        return channel

    def health(self):
        return health_pb2_grpc.HealthStub(self.channel())

    def get(self, path):
        """Status and text of an HTTP page."""
        try:
            with urllib.request.urlopen(f"http://{self.http}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metrics(self):
        """Every sample, by name and labels as they are written; 0 for a series that is not there, as those that have not counted."""
        lines = self.get("/metrics")[1].splitlines()
        samples = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return collections.defaultdict(float, ((name, float(value)) for name, value in samples))

    def status(self):
        """Numbers of /proc/PID/status, such as VmRSS and VmHWM in KiB, and Threads."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        fields = (line.split(":", 1) for line in lines)
        return {name: int(value.split()[0]) for name, value in fields if value.split() and value.split()[0].isdigit()}

    def resident_bytes(self):
        return self.metrics()["process_resident_memory_bytes"]

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def stop(self, timeout=15):
        """SIGTERM; the exit code."""
        for channel in self.channels:
            channel.close()
        if self.process.poll() is None:
            self.signal()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def run(*flags, environment=None, timeout=10, before=()):
    """Runs quantd until it ends: (exit code, stdout, stderr)."""
    done = subprocess.run(
        [*before, str(BINARY), *flags], capture_output=True, text=True, timeout=timeout, env={**ENVIRONMENT, **(environment or {})}
    )
    return done.returncode, done.stdout, done.stderr


def rounds(seconds, enough, most=60):
    """The rounds of a loop: for `seconds`, on a busy machine until there are enough, or at most for `most` seconds."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds or (passed < most and not enough()):
        yield


def wait_for(condition, seconds, what):
    """Polls until the condition holds."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
