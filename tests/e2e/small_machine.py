"""Machines with less than this one, for a server under test: each is a command to put before the server's own (`before=` of support.py), or a
skipped test if this machine does not allow it."""

import contextlib
import itertools
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

TOP = Path("/sys/fs/cgroup")
COUNTER = itertools.count()
# The files that set each limit, in version 1 and 2.
FILES = {
    "memory": (("memory.limit_in_bytes", "{}"), ("memory.max", "{}")),
    "cpu": (("cpu.cfs_quota_us", "{}"), ("cpu.max", "{} 100000")),
    "pids": (("pids.max", "{}"), ("pids.max", "{}")),
}


class Cgroup:
    """A cgroup below this process's own, with one limit: bytes of memory, microseconds of each 100 ms of cpu, or pids.

    with Cgroup("pids", 64) as group: start(before=group.command)"""

    def __init__(self, controller, value):
        self.controller, self.value = controller, value

    def __enter__(self):
        parent, version = self._parent()
        self.folder = parent / f"quantd-test-{os.getpid()}-{next(COUNTER)}"
        self._file, self._format = FILES[self.controller][version - 1]
        try:
            if version == 2:
                (parent / "cgroup.subtree_control").write_text(f"+{self.controller}")
            self.folder.mkdir()
            self.limit(self.value)
        except OSError as error:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
            pytest.skip(f"no cgroup can be made here ({error.strerror})")
        self.command = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(self.folder)]
        return self

    def __exit__(self, *_):
        for process in (self.folder / "cgroup.procs").read_text().split():  # left by a test that failed
            os.kill(int(process), signal.SIGKILL)
        deadline = time.monotonic() + 5
        while True:  # a process that has just ended may still be in it
            try:
                return self.folder.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _parent(self):
        """The folder of this process's own group, or the top if that is not visible; and the version."""
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if self.controller in controllers.split(","):
                mount, version = TOP / controllers, 1
            elif not controllers and self.controller in self._of_version_2():
                mount, version = TOP, 2
            else:
                continue
            own = mount / path.lstrip("/")
            return (own if own.is_dir() else mount), version
        pytest.skip(f"no cgroups of {self.controller} here")

    @staticmethod
    def _of_version_2():
        controllers = TOP / "cgroup.controllers"
        return controllers.read_text().split() if controllers.exists() else []

    def limit(self, value):
        (self.folder / self._file).write_text(self._format.format(value))


def mounted(folder, *commands):
    """Runs shell commands in a mount namespace of the server's own, in which $0 is the folder."""
    own = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    before = [*own, "sh", "-c", " && ".join([*commands, 'exec "$@"']), str(folder)]
    tried = subprocess.run([*before, "true"], capture_output=True, text=True, timeout=20)
    if tried.returncode != 0:
        pytest.skip(f"nothing can be mounted here ({tried.stderr.strip()})")
    return before
