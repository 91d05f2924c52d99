"""deploy/quickstart.sh --serve and how it ends. The script is the real one, in a tree whose programs are stand-ins: nothing is
installed or compiled here."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# It reacts to signals like quantd (tests/e2e/test_drain.py): the first one begins a drain, a second one ends it.
QUANTD = f"""#!{sys.executable}
import json, os, signal, sys
both = {{signal.SIGINT, signal.SIGTERM}}
signal.pthread_sigmask(signal.SIG_BLOCK, both)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
flags = dict(argument[2:].split("=", 1) for argument in sys.argv[1:])
print("listening", flags["listen"], flags["http_listen"], flush=True)
with open(flags["ready_file"] + ".tmp", "w") as file:
    json.dump(dict(grpc=[flags["listen"]], http=flags["http_listen"], pid=os.getpid()), file)
os.rename(flags["ready_file"] + ".tmp", flags["ready_file"])
signal.sigwait(both)
print("draining", flush=True)
if again := signal.sigtimedwait(both, float(os.environ["DRAIN"])):
    sys.exit(128 + again.si_signo)
print("stopped", flush=True)
"""
PROGRAMS = {
    "build/release/server/quantd": QUANTD,
    "build/release/client/quantctl": "#!/bin/sh\n",
    "bin/apt-get": "#!/bin/sh\n",
    "bin/curl": "#!/bin/sh\necho 'quantd_build_info 1'\n",
    "bin/dpkg-query": f"#!/bin/sh\nbash {ROOT}/deploy/packages.sh list build | sed 's/^/installed /'\n",
    "bin/cmake": "#!/bin/sh\ntouch build/release/build.ninja\n",
    "bin/ninja": "#!/bin/sh\necho 'ninja: no work to do.'\n",
    "deploy/make_tensors.py": "",
    "deploy/check_tensors.py": "",
}


def interruptible():
    """A shell that was started with SIGINT ignored, like those in the background, cannot trap it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Quickstart:
    """quickstart.sh --serve, at the head of a process group as in a terminal."""

    def __init__(self, folder, drain):
        for name in ("lib.sh", "packages.sh", "quickstart.sh"):
            (folder / "deploy").mkdir(exist_ok=True)
            shutil.copy(ROOT / "deploy" / name, folder / "deploy" / name)
        for name, text in PROGRAMS.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        # Everything that it starts has this in its environment.
        self.mark = f"QUANTD_TEST_TREE={folder}"
        environment = {
            **os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "QUANTD_TEST_TREE": str(folder), "DRAIN": str(drain),
            "QUANTD_LISTEN": "127.0.0.1:61", "QUANTD_HTTP_LISTEN": "127.0.0.1:62",
        }
        self.output = folder / "output"
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(
                [folder / "deploy" / "quickstart.sh", "--serve"], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, process_group=0, preexec_fn=interruptible,
            )
        self.wait_for("listening 127.0.0.1:61 127.0.0.1:62")

    def wait_for(self, text):
        deadline = time.monotonic() + 20
        while text not in self.output.read_text():
            assert self.process.poll() is None and time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.02)

    def left(self):
        """Living processes that it started."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((int(entry.name), (entry / "cmdline").read_bytes()))
            except OSError:
                continue  # it has ended, or belongs to somebody else
        return found

    def last_lines(self):
        """Its output from the first line of the server's log on."""
        return self.output.read_text().split("listening", 1)[1].splitlines()[1:]


@pytest.fixture
def serve(tmp_path):
    started = []

    def begin(drain):
        started.append(Quickstart(tmp_path, drain))
        return started[-1]

    yield begin
    for quickstart in started:
        for process, _ in quickstart.left():
            os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("whom", [os.killpg, os.kill], ids=["group", "script"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_after_the_drain(serve, whom, number):
    """Ctrl-C reaches the whole group, `kill` only the script: the server gets one signal in both cases."""
    quickstart = serve(drain=0.5)
    whom(quickstart.process.pid, number)
    assert quickstart.process.wait(20) == 0, quickstart.output.read_text()
    assert quickstart.left() == []
    if (whom, number) == (os.killpg, signal.SIGTERM):  # it also ended the program that shows the log
        assert "stopped" in (quickstart.output.parent / "build/quickstart/quantd.log").read_text()
    else:
        assert quickstart.last_lines() == ["draining", "stopped"]


def test_a_second_signal_ends_the_server_at_once(serve):
    quickstart = serve(drain=60)
    os.killpg(quickstart.process.pid, signal.SIGINT)
    quickstart.wait_for("draining")
    os.killpg(quickstart.process.pid, signal.SIGINT)
    assert quickstart.process.wait(20) == 128 + signal.SIGTERM
    assert quickstart.left() == []
    assert quickstart.last_lines() == ["draining"]
