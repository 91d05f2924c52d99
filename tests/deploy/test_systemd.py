"""The unit, as systemd reads it, and the server under its restrictions."""

import ctypes
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEMD = ROOT / "deploy" / "systemd"
QUANTD = ROOT / "build/release/server/quantd"
QUANTCTL = ROOT / "build/release/client/quantctl"


def settings(name):
    return re.findall(rf"^{name}=(.*)$", (SYSTEMD / "quantd.service").read_text(), re.MULTILINE)


def need_systemd(seccomp=False):
    """systemd-analyze, which knows the contents of @system-service; and the library that can make a filter of it."""
    if shutil.which("systemd-analyze") is None or subprocess.run(["systemd-analyze", "--version"], capture_output=True).returncode != 0:
        pytest.skip("no systemd-analyze that runs on this machine")
    if seccomp:
        try:
            ctypes.CDLL("libseccomp.so.2")
        except OSError:
            pytest.skip("no libseccomp on this machine")


def analyze(*arguments):
    need_systemd()
    return subprocess.run(["systemd-analyze", "--no-pager", *map(str, arguments)], capture_output=True, text=True)


def test_systemd_accepts_it(tmp_path):
    if not pathlib.Path("/lib/systemd/system/sysinit.target").exists():
        pytest.skip("no units of systemd's on this machine")
    unit = tmp_path / "quantd.service"
    unit.write_text((SYSTEMD / "quantd.service").read_text().replace("ExecStart=/usr/bin/quantd", f"ExecStart={QUANTD}"))
    done = analyze("verify", unit)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_it_outlasts_what_it_starts():
    """The drain in the shipped /etc/default/quantd is over before systemd kills."""
    (stop,) = settings("TimeoutStopSec")
    defaults = dict(re.findall(r"^#QUANTD_(\w+_SECONDS)=(\d+)$", (SYSTEMD / "quantd.default").read_text(), re.MULTILINE))
    assert set(defaults) == {"LAME_DUCK_SECONDS", "DRAIN_SECONDS"}
    assert int(stop.removesuffix("s")) > sum(map(int, defaults.values())) + 10


def test_every_default_is_a_flag_with_that_default():
    """Removing the # from a line must not change what the server does."""
    help_text = subprocess.run([QUANTD, "--help"], check=True, capture_output=True, text=True).stdout
    known = {f"QUANTD_{name.upper()}": default for name, default in re.findall(r"^  --(\w+)  \((.*)\)$", help_text, re.MULTILINE)}
    lines = re.findall(r"^#(QUANTD_\w+)=(.*)$", (SYSTEMD / "quantd.default").read_text(), re.MULTILINE)
    assert len(lines) >= 6
    for name, value in lines:
        assert name in known and (value == known[name] or value.startswith("unix:")), (name, value)
    assert not re.search(r"^[^#\n]", (SYSTEMD / "quantd.default").read_text(), re.MULTILINE)


def test_the_server_works_behind_its_walls(tmp_path):
    """Under the unit's system calls, address families and memory that is never writable and executable."""
    need_systemd(seccomp=True)
    socket, ready = tmp_path / "socket", tmp_path / "ready.json"
    command = [sys.executable, ROOT / "tests/packages/confined.py", SYSTEMD / "quantd.service"]
    command += [QUANTD, f"--listen=unix:{socket},127.0.0.1:0,localhost:0", "--http_listen=127.0.0.1:0", f"--ready_file={ready}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            end = time.monotonic() + 60
            while not ready.exists():
                assert server.poll() is None and time.monotonic() < end, server.stderr.read()
                time.sleep(0.05)
            subprocess.run([sys.executable, ROOT / "deploy/make_tensors.py", tmp_path], check=True)
            arguments = ["-o", tmp_path / "y.safetensors", "--type=uint8", f"--address=unix:{socket}"]
            subprocess.run([QUANTCTL, "quantize", tmp_path / "embeddings.npy", *arguments], check=True)
            subprocess.run([sys.executable, ROOT / "tests/check_tensors.py", tmp_path / "embeddings.npy", tmp_path / "y.safetensors"], check=True)
        finally:
            server.terminate()
        assert server.wait(60) == 0


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm"])
@pytest.mark.parametrize("arguments", [["configure"], ["configure", "0.0.9"], ["remove"], ["purge"], ["upgrade", "0.1.0"], ["failed-upgrade"], []])
def test_maintainer_scripts_end_well_where_nothing_works(tmp_path, script, arguments):
    """dpkg leaves a package broken if a script fails: no systemd, helpers that fail, users that exist."""
    for name in ("systemctl", "deb-systemd-invoke", "deb-systemd-helper"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    for name in ("getent", "groupadd", "useradd"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >>{tmp_path}/calls\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run([SYSTEMD / script, *arguments], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "calls").exists() == (script == "postinst" and arguments[:1] == ["configure"])
