"""Compares the bill of materials in a mounted image with the image: bill.py ROOT ARCHITECTURE VERSION CREATED. Prints what is wrong,
and exits with 1."""

import hashlib
import json
import pathlib
import sys

from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document


def main():
    root, architecture, version, created = pathlib.Path(sys.argv[1]), *sys.argv[2:]
    path = root / "usr/share/sbom/quantd.spdx.json"
    wrong = [message.validation_message for message in validate_full_spdx_document(parse_file(str(path)))]
    bill = json.loads(path.read_text())
    if bill["name"] != f"quantd-{version}-{architecture}":
        wrong.append(f"name is {bill['name']}")
    if bill["creationInfo"]["created"] != created:
        wrong.append(f"created is {bill['creationInfo']['created']}")
    listed = {entry["fileName"]: entry["checksums"][1]["checksumValue"] for entry in bill["files"]}
    there = {"./" + str(file.relative_to(root)): file for file in root.rglob("*") if file.is_file() and not file.is_symlink() and file != path}
    wrong += [f"{name} is in the image and not in the bill" for name in there.keys() - listed.keys()]
    wrong += [f"{name} is in the bill and not in the image" for name in listed.keys() - there.keys()]
    same = there.keys() & listed.keys()
    wrong += [f"{name} has another sum" for name in same if hashlib.sha256(there[name].read_bytes()).hexdigest() != listed[name]]
    packages = {package["name"]: package for package in bill["packages"]}
    for name in ("libc6", "libstdc++6", "libtbb12"):
        if f"arch={architecture}" not in packages[name]["externalRefs"][0]["referenceLocator"]:
            wrong.append(f"{name} is for another architecture")
    print(f"{len(listed)} files, {len(packages)} packages")
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
