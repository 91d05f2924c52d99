"""The bill of materials of what collect_image.sh collects from the release build: valid SPDX, complete, true, and the same twice."""

import hashlib
import json
import pathlib
import shutil
import subprocess

import pytest
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = ROOT / "build/release"
BILL = "usr/share/sbom/quantd.spdx.json"


def make(root, **options):
    arguments = {"root": root, "tree": TREE, "version": "1.2.3", "output": root / BILL, "notices": root, "epoch": 86400} | options
    done = subprocess.run([ROOT / "deploy/sbom.py", *(f"--{name}={value}" for name, value in arguments.items())], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((root / BILL).read_text())


def collect(root, *programs):
    return subprocess.run([ROOT / "deploy/collect_image.sh", root, *programs], capture_output=True, text=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("image")
    done = collect(folder, TREE / "server/quantd", TREE / "client/quantctl")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def bill(root):
    return make(root)


def related(bill, relation):
    return {(r["spdxElementId"], r["relatedSpdxElement"]) for r in bill["relationships"] if r["relationshipType"] == relation}


def test_what_is_collected_runs_on_its_own(root):
    """Only what is in the folder: with it as the root, as in the container."""
    if shutil.which("chroot") is None or subprocess.run(["chroot", root, "/quantctl", "--version"], capture_output=True).returncode == 125:
        pytest.skip("chroot is for root")
    for program in ("/quantctl", "/quantd"):
        done = subprocess.run(["chroot", root, program, "--version"], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.startswith(program[1:]), done.stderr


def test_it_is_valid_spdx(root, bill):
    messages = validate_full_spdx_document(parse_file(str(root / BILL)))
    assert [message.validation_message for message in messages] == []
    assert bill["spdxVersion"] == "SPDX-2.3" and bill["creationInfo"]["created"] == "1970-01-02T00:00:00Z"


def test_every_file_is_in_it_with_its_sum(root, bill):
    sums = {entry["fileName"]: entry["checksums"][1]["checksumValue"] for entry in bill["files"]}
    there = {"./" + str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path != root / BILL}
    assert sums.keys() == there.keys()
    assert sums == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in there.items()}


def test_every_library_is_of_a_package_with_its_version(root, bill):
    packages = {package["SPDXID"]: package for package in bill["packages"]}
    of = dict(related(bill, "EXPANDED_FROM_ARCHIVE"))
    libraries = {entry["SPDXID"]: entry["fileName"] for entry in bill["files"] if ".so" in entry["fileName"]}
    assert len(libraries) > 30 and libraries.keys() <= of.keys()
    for file in libraries:
        package = packages[of[file]]
        shown = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package["name"]], capture_output=True, text=True).stdout
        assert package["versionInfo"] in shown, package["name"]
        (reference,) = package["externalRefs"]
        assert reference["referenceLocator"].startswith("pkg:deb/debian/")


def test_a_library_of_no_package_is_refused(root, tmp_path):
    copy = tmp_path / "image"
    shutil.copytree(root, copy)
    shutil.copyfile(TREE / "server/quantd", copy / "lib/libstray.so")
    done = subprocess.run(
        [ROOT / "deploy/sbom.py", f"--root={copy}", f"--tree={TREE}", "--version=1.2.3", f"--output={copy / BILL}"], capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr == "sbom.py: no Debian package has /lib/libstray.so\n"
