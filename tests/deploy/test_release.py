"""deploy/release.sh without network and key: what it refuses, makes and prints; in a clone, so that the tree is clean."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"^project\(quantd VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def git(clone, *arguments):
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=clone, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files of this tree as they are now, in a repository of their own with a dated section in the changelog."""
    folder = tmp_path_factory.mktemp("made") / "clone"
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in names.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    text = (folder / "CHANGELOG.md").read_text()
    (folder / "CHANGELOG.md").write_text(text.replace(f"## {VERSION} (unreleased)", f"## {VERSION} (2026-01-02)"))
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


@pytest.fixture
def clone(made, tmp_path):
    """A tree that a test may break."""
    shutil.copytree(made, tmp_path / "clone", symlinks=True)
    return tmp_path / "clone"


def change(clone, file, old, new):
    text = (clone / file).read_text()
    assert old in text or old == ""
    (clone / file).write_text(text.replace(old, new) if old else text + new)


def commit(clone):
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message=x")


def release(clone, *arguments, environment=None):
    """Exit code, output and errors; every program that would use the network is replaced by one that says so and fails."""
    stand_ins = clone.parent / "stand-ins"
    stand_ins.mkdir(exist_ok=True)
    for name in ("docker", "podman", "buildah", "cosign", "twine", "curl"):
        (stand_ins / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{clone.parent}/reached\nexit 1\n')
        (stand_ins / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{stand_ins}:{os.environ['PATH']}", **(environment or {})}
    for name in ("QUANTD_REGISTRY", "QUANTD_INDEX"):
        environment.setdefault(name, "")
    done = subprocess.run([clone / "deploy/release.sh", *arguments], cwd=clone, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


QUICK = "--only=check,tag,sums,push,sign"


def test_a_dry_run_says_what_it_would_do_and_does_none_of_it(clone):
    (clone / "build" / VERSION).mkdir(parents=True)
    (clone / "build" / VERSION / "some.whl").write_bytes(b"wheel")
    code, out, error = release(clone, VERSION, "--dry-run", QUICK, "--registry=registry.test/team", "--index=http://index.test")
    assert (code, error) == (0, "")
    assert "would refuse" not in out
    said = [line.removeprefix("    would run: ") for line in out.splitlines() if "would run" in line]
    assert [line.split()[:2] for line in said] == [
        ["git", "tag"], ["git", "push"], *[["docker", "push"], ["docker", "push"], ["docker", "buildx"]] * 2, ["twine", "upload"],
        ["cosign", "sign"], ["cosign", "sign"], ["cosign", "attest"], ["cosign", "attest"], ["cosign", "sign-blob"],
    ]  # fmt: skip
    assert all("registry.test/team/quantd:" in line for line in said if line.startswith("docker"))
    for architecture in ("amd64", "arm64"):
        assert sum(f"quantd:{VERSION}-{architecture}" in line for line in said) >= 3
        assert sum(f"quantd:{VERSION}-debug-{architecture}" in line for line in said) == 2
    assert not (clone.parent / "reached").exists()
    assert git(clone, "tag", "--list") == ""
    assert git(clone, "status", "--porcelain") == ""
    sums = (clone / "build" / VERSION / "SHA256SUMS").read_text()
    assert sums == f"{hashlib.sha256(b'wheel').hexdigest()}  some.whl\n"


def test_the_kit_is_the_same_each_time(clone):
    """Complete, below 20 MB, with version, licence and hash."""
    pytest.importorskip("grpc_tools")
    sums = []
    for _ in range(2):
        command = [clone / "deploy/release.sh", VERSION, "--dry-run", "--only=kit,sums", f"--python={sys.executable}"]
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True, timeout=1500)
        assert done.returncode == 0, done.stderr
        sums.append((clone / "build" / VERSION / "SHA256SUMS").read_text())
    archive = clone / "build" / VERSION / f"quantd-conformance-{VERSION}.tar.xz"
    assert sums[0] == sums[1] == f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n"
    assert archive.stat().st_size < 20 << 20
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        manifest = json.load(tar.extractfile(f"quantd-conformance-{VERSION}/manifest.json"))
    assert manifest["version"] == VERSION and manifest["license"] == "Apache-2.0" and re.fullmatch("[0-9a-f]{64}", manifest["digest"])
    assert {f"quantd-conformance-{VERSION}/{name}" for name in ("LICENSE", "FORMAT.md")} <= set(names)
    assert sum(name.endswith("/model.onnx") for name in names) == manifest["families"]["node"] + manifest["families"]["open"]


@pytest.mark.parametrize(
    "spoil, said",
    [
        (lambda clone: change(clone, "README.md", "", "x"), "changes that are in no commit"),
        (lambda clone: (clone / "stray").write_text("x"), "changes that are in no commit"),
        (lambda clone: (change(clone, "CHANGELOG.md", "(2026-01-02)", "(unreleased)"), commit(clone)), "is unreleased"),
        (lambda clone: (git(clone, "tag", f"v{VERSION}"), change(clone, "README.md", "", "x"), commit(clone)), "is a tag already"),
    ],
)
def test_what_is_not_ready_is_refused_and_said_in_a_dry_run(clone, spoil, said):
    assert release(clone, VERSION, "--only=check")[0] == 0
    spoil(clone)
    code, _, error = release(clone, VERSION, "--only=check")
    assert code == 1 and said in error
    code, out, _ = release(clone, VERSION, "--dry-run", "--only=check")
    assert code == 0 and "would refuse: " in out and said in out


FILES = re.findall(r"^(\S+) \S.*$", re.search(r"<<'TABLE'\n(.*?)\nTABLE", (ROOT / "deploy/release.sh").read_text(), re.DOTALL)[1], re.MULTILINE)


@pytest.mark.parametrize("file", FILES)
def test_a_file_with_another_version_is_named(clone, file):
    assert len(FILES) >= 9
    change(clone, file, VERSION, "7.7.7")
    code, _, error = release(clone, VERSION, "--dry-run", "--only=check")
    assert code == 1 and f"{file} says '7.7.7" in error
    (clone / file).unlink()
    code, _, error = release(clone, VERSION, "--dry-run", "--only=check")
    assert code == 1 and (f"{file} is gone" in error or "CHANGELOG" in error)


def test_every_file_that_says_the_version_is_in_the_table():
    """Manifests, packages and charts: lines of the kind `version = "0.1.0"`, `image: quantd:0.1.0`, `<version>0.1.0<`."""
    pattern = rf"^\s*(\"?(app)?version\"?|__version__|newTag|tag|image)\s*[:=].*{re.escape(VERSION)}\"?,?$|^  <version>{re.escape(VERSION)}<"
    command = ["git", "grep", "-lIiE", pattern.replace(r"\s", "[[:space:]]"), "--", ":!tests", ":!*lock*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert set(done.stdout.split()) <= set(FILES)
