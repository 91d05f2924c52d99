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


def test_what_ldd_lists_is_collected(root):
    for program in (TREE / "server/quantd", TREE / "client/quantctl"):
        text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        names = {pathlib.PurePath(line.split("=>")[-1].split()[0]).name for line in text.splitlines() if "/" in line}
        assert len(names) > 20
        assert names <= {path.name for path in root.rglob("*")}


def test_a_library_that_is_not_there_is_an_error(tmp_path):
    source = tmp_path / "x.cc"
    source.write_text("int f(); int main() { return f(); }")
    (tmp_path / "f.cc").write_text("int f() { return 0; }")
    subprocess.run(["g++", "-shared", "-fPIC", "-o", tmp_path / "libquantd_nowhere.so", tmp_path / "f.cc"], check=True)
    subprocess.run(["g++", "-o", tmp_path / "x", source, f"-L{tmp_path}", "-lquantd_nowhere"], check=True)
    done = collect(tmp_path / "root", tmp_path / "x")
    assert done.returncode != 0 and "needs libquantd_nowhere.so" in done.stderr
    done = collect(tmp_path / "root", source)
    assert done.returncode != 0 and "x.cc is for neither amd64 nor arm64" in done.stderr


def test_it_is_valid_spdx(root, bill):
    messages = validate_full_spdx_document(parse_file(str(root / BILL)))
    assert [message.validation_message for message in messages] == []
    assert bill["spdxVersion"] == "SPDX-2.3" and bill["creationInfo"]["created"] == "1970-01-02T00:00:00Z"


def test_a_document_with_a_mistake_is_not(root, bill, tmp_path):
    broken = dict(bill, packages=bill["packages"][:-1])
    (tmp_path / "broken.spdx.json").write_text(json.dumps(broken))
    assert validate_full_spdx_document(parse_file(str(tmp_path / "broken.spdx.json")))


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


def test_what_went_into_the_programs_is_in_it(bill):
    names = {package["SPDXID"]: package["name"] for package in bill["packages"]}
    inputs = {names[one] for one, other in related(bill, "BUILD_DEPENDENCY_OF") if names[other] == "quantd"}
    assert {"nlohmann-json3-dev", "libcli11-dev", "libhwy-dev", "libc6-dev"} <= inputs, "header-only libraries are in no closure of ldd"
    assert "protobuf-compiler" in {names[other] for one, other in related(bill, "GENERATED_FROM") if names.get(one) == "quantd-generated"}
    linked = {names[other] for one, other in related(bill, "DYNAMIC_LINK") if names[one] == "quantd"}
    assert any(name.startswith("libnghttp2") for name in linked) and any(name.startswith("libgrpc++") for name in linked)


def test_licences_are_known_or_said_to_be_unknown(bill):
    licences = {package["name"]: package["licenseDeclared"] for package in bill["packages"]}
    assert licences["quantd"] == "Apache-2.0" and licences["zlib1g"] == "Zlib"
    assert licences["libc6"] == "LGPL-2.1-or-later"
    assert licences["libstdc++6"] == "GPL-3.0-or-later WITH GCC-exception-3.1"
    assert sum(licence != "NOASSERTION" for licence in licences.values()) > len(licences) / 2


def test_scanners_and_lawyers_find_what_they_look_for(root, bill):
    status = {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
    assert any(name.startswith("libgrpc") for name in status) and "libc6" in status
    for name in status:
        assert (root / "usr/share/doc" / name / "copyright").stat().st_size > 100
        assert (root / "var/lib/dpkg/status.d" / name).read_text().startswith(f"Package: {name}\n")
    assert (root / "usr/share/doc/quantd/copyright").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (root / "usr/share/common-licenses/Apache-2.0").exists()
    assert (root / "etc/os-release").read_text().count("VERSION_ID")


def test_the_same_twice_and_another_when_something_is_another(root, bill):
    first = (root / BILL).read_bytes()
    make(root)
    assert (root / BILL).read_bytes() == first
    (root / "etc/passwd").write_text((root / "etc/passwd").read_text() + "\n")
    other = make(root)
    assert other["documentNamespace"] != bill["documentNamespace"]


def test_a_library_of_no_package_is_refused(root, tmp_path):
    copy = tmp_path / "image"
    shutil.copytree(root, copy)
    shutil.copyfile(TREE / "server/quantd", copy / "lib/libstray.so")
    done = subprocess.run(
        [ROOT / "deploy/sbom.py", f"--root={copy}", f"--tree={TREE}", "--version=1.2.3", f"--output={copy / BILL}"], capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr == "sbom.py: no Debian package has /lib/libstray.so\n"
