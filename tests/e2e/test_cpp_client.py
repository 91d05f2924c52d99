"""The C++ client against running servers, one of which accepts only small messages, and without a server."""

import os
import signal
import subprocess
import time

from support import ROOT, wait_for

BUILD = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release")
EXAMPLE = BUILD / "client" / "cpp" / "client_example"
SPLIT = BUILD / "tests" / "client" / "split_against_servers"
SMALL = "--max_message_bytes=1048576"


def run(address):
    done = subprocess.run([str(EXAMPLE), address], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


def started(server):
    """Calls that reached a server."""
    return sum(value for name, value in server.metrics().items() if name.startswith("grpc_server_started_total"))


def test_the_example_quantizes(server):
    code, out, err = run(server.address)
    assert (code, err) == (0, "")
    # scale = 4.5 / 254; zero point = rint(-127 + 1.5 / scale) = -42
    assert out.splitlines()[:4] == ["-1.5 -> -127", "0 -> -42", "0.25 -> -28", "3 -> 127"]
    assert out.splitlines()[4].startswith("scale 0.0177165, SQNR ")


def test_the_example_says_why_not():
    code, out, err = run("127.0.0.1:1")
    assert (code, out) == (1, "") and "UNAVAILABLE" in err


def test_pieces_are_the_whole(start):
    small = start(SMALL)
    done = subprocess.run([str(SPLIT), small.address], capture_output=True, text=True, timeout=120)
    assert done.stdout == "OK\n", done.stdout + done.stderr
    assert started(small) > 30


def test_a_server_that_dies_between_pieces_is_an_error(start):
    small = start(SMALL)
    process = subprocess.Popen([str(SPLIT), small.address], stdout=subprocess.PIPE, text=True)
    wait_for(lambda: started(small) > 5, 30, "the first pieces")
    small.signal(signal.SIGKILL)
    killed = time.monotonic()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 1 and out.startswith("UNAVAILABLE")
    assert time.monotonic() - killed < 10
