"""deploy/packages.sh on a machine whose apt is busy: a fresh machine runs apt at boot."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Prints apt's message for each of its three locks, as many times as it is told to, and then nothing.
APT = """#!/bin/sh
echo x >>"$CALLS"
[ "$(wc -l <"$CALLS")" -gt "$BUSY" ] && exit 0
echo "$ERROR" >&2
exit 100
"""
LISTS = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 123 (apt-get)"
ARCHIVES = "E: Could not get lock /var/cache/apt/archives/lock. It is held by process 123 (apt-get)"
DPKG = "E: Unable to lock the administration directory (/var/lib/dpkg/), is another process using it?"
OTHER = "E: Failed to fetch Packages"


def packages_apt(folder, error, busy, wait):
    """The exit code of packages_apt update, its output, and how many times it ran apt, if that is busy `busy` times."""
    for name, text in ("apt-get", APT), ("sudo", '#!/bin/sh\nexec "$@"\n'):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    calls = folder / "calls"
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(calls), "BUSY": str(busy), "ERROR": error}
    script = f"set -euo pipefail; source {ROOT}/deploy/packages.sh; PACKAGES_WAIT={wait}; exec 3>&1; packages_apt update || exit"
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, len(calls.read_text().split())


@pytest.mark.parametrize("error", [LISTS, ARCHIVES, DPKG])
def test_it_waits_for_another_apt_and_says_so_once(tmp_path, error):
    code, said, calls = packages_apt(tmp_path, error, busy=2, wait=30)
    assert (code, calls) == (0, 3)
    assert said.count("waiting for another apt") == 1


def test_not_for_ever(tmp_path):
    code, said, calls = packages_apt(tmp_path, LISTS, busy=1000, wait=3)
    assert code == 100 and calls < 5 and LISTS in said


def test_another_error_is_told_at_once(tmp_path):
    code, said, calls = packages_apt(tmp_path, OTHER, busy=1000, wait=30)
    assert (code, calls) == (100, 1) and OTHER in said and "waiting" not in said
