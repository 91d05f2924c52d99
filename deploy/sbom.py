#!/usr/bin/env python3
"""The bill of materials of a folder that collect_image.sh has made, as SPDX 2.3 in JSON.

It is made from the files that exist and from what ninja read to build them, not from a list: every file with its checksums and its
Debian package; the libraries that each program and library needs; and the packages of every header, archive and tool that went into
the programs. The same inputs give the same bytes.

    sbom.py --root=FOLDER --tree=build/release --version=0.1.0 --output=FILE [--epoch=SECONDS] [--notices=FOLDER]

--notices also writes the copyright file and dpkg's status of every package in it, where scanners look for them.
"""

import argparse
import collections
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

# Debian's names of licences for which SPDX has another name; the others are looked up unchanged.
LICENCES = {
    "apache-2": "Apache-2.0", "apache-2.0": "Apache-2.0", "artistic": "Artistic-1.0-Perl", "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause", "bsl-1.0": "BSL-1.0", "cc0-1.0": "CC0-1.0", "curl": "curl", "expat": "MIT",
    "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-3": "GPL-3.0-only", "gpl-3+": "GPL-3.0-or-later", "isc": "ISC",
    "lgpl-2": "LGPL-2.0-only", "lgpl-2+": "LGPL-2.0-or-later", "lgpl-2.1": "LGPL-2.1-only", "lgpl-2.1+": "LGPL-2.1-or-later",
    "bsd-3-clause~google": "BSD-3-Clause", "bsd-3-google": "BSD-3-Clause", "lgpl-3": "LGPL-3.0-only", "lgpl-3+": "LGPL-3.0-or-later",
    "mit": "MIT", "mpl-2.0": "MPL-2.0", "zlib": "Zlib",
}  # fmt: skip
# The licences of runtime libraries whose copyright files only people can read, by source package.
LICENCES_OF_SOURCES = {"c-ares": "MIT", "glibc": "LGPL-2.1-or-later", "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1"}
UNKNOWN = "NOASSERTION"
NOTICES = ("/usr/share/doc/", "/usr/share/common-licenses/", "/var/lib/dpkg/")

Package = collections.namedtuple("Package", "name architecture version source source_version homepage maintainer")


def output_of(*command, okay=(0,)):
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
    if done.returncode not in okay:
        sys.exit(f"sbom.py: {' '.join(command[:4])}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def owners_of(paths):
    """{path: package:architecture} for those paths that belong to a package. /lib and /usr/lib are the same place, and packages use
    either name; a link may be made at installation, and then its target belongs to the package."""
    wanted = {}
    for path in map(str, paths):
        for form in (path, os.path.realpath(path)):
            bare = form.removeprefix("/usr")
            for spelt in (form, bare, "/usr" + bare):
                wanted.setdefault(spelt, []).append(path)
    owners = {}
    spellings = sorted(wanted)
    for start in range(0, len(spellings), 500):
        for line in output_of("dpkg-query", "--search", *spellings[start : start + 500], okay=(0, 1)).splitlines():
            names, _, spelt = line.partition(": ")
            if line.startswith("diversion "):
                continue
            for path in wanted.get(spelt, []):
                owners.setdefault(path, names.split(", ")[0])
    return owners


def packages_of(names):
    """{name as dpkg-query --search has it: Package}"""
    fields = ("Package", "Architecture", "Version", "source:Package", "source:Version", "Homepage", "Maintainer")
    template = "\t".join("${%s}" % field for field in fields) + "\n"
    return {name: Package(*output_of("dpkg-query", "--show", f"--showformat={template}", name).rstrip("\n").split("\t")) for name in names}


def needed_by(path):
    """The names of the libraries that an ELF file needs; None if it is not an ELF file."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "--dynamic", "--wide", str(path)))


def built_from(tree):
    """Files outside the project that went into the programs of a build tree: headers, archives; and the tools."""
    programs = ("quantd", "quantctl")
    headers = re.findall(r"^    (/usr/.*)$", output_of("ninja", "-C", str(tree), "-t", "deps"), re.MULTILINE)
    linked = [line for line in output_of("ninja", "-C", str(tree), "-t", "inputs", *programs).split("\n") if line.startswith("/usr/")]
    cache = (tree / "CMakeCache.txt").read_text()
    tools = re.findall(r"^(?:CMAKE_CXX_COMPILER|Protobuf_PROTOC_EXECUTABLE|GRPC_CPP_PLUGIN):\w+=(.*)$", cache, re.MULTILINE)
    tools = [found if found.startswith("/") else f"/usr/bin/{found}" for found in tools]
    return sorted(set(headers + [path for path in linked if path.endswith((".a", ".so", ".h"))])), sorted(set(map(os.path.realpath, tools)))


def copyright_file(package):
    return pathlib.Path(os.path.realpath(f"/usr/share/doc/{package.name}")) / "copyright"


def licence_of(package):
    """The licence in the paragraph `Files: *` of a machine-readable copyright file."""
    source = re.sub(r"-\d+$", "", package.source)
    if package.name.startswith("lib") and source in LICENCES_OF_SOURCES:
        return LICENCES_OF_SOURCES[source]
    try:
        text = copyright_file(package).read_text(errors="replace")
    except OSError:
        return UNKNOWN
    for paragraph in re.split(r"\n\s*\n", text):
        licence = re.search(r"^License:[ \t]*(.*)$", paragraph, re.MULTILINE)
        if licence and re.search(r"^Files:\s*\*\s*$", paragraph, re.MULTILINE):
            words = re.split(r"\s+(or|and)\s+", licence.group(1).strip().lower())
            terms = [LICENCES.get(word) for word in words[::2]]
            joints = [word.upper() for word in words[1::2]]
            if None in terms or len(set(joints)) > 1:
                return UNKNOWN
            return f" {joints[0]} ".join(terms) if joints else terms[0]
    return UNKNOWN


def write_notices(root, folder, packages):
    licence = root.parent / "LICENSE"
    common = set()
    for package in packages:
        text = copyright_file(package).read_bytes()
        common |= set(re.findall(rb"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", text))
        write(folder / "usr/share/doc" / package.name / "copyright", text)
        entry = output_of("dpkg-query", "--status", f"{package.name}:{package.architecture}" if package.architecture != "all" else package.name)
        write(folder / "var/lib/dpkg/status.d" / package.name, entry.rstrip("\n").encode() + b"\n\n")
    for name in sorted(common):
        text = pathlib.Path("/usr/share/common-licenses") / name.decode()
        if text.is_file():
            write(folder / "usr/share/common-licenses" / name.decode(), text.read_bytes())
    write(folder / "usr/share/doc/quantd/copyright", licence.read_bytes())


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o644)


class Bill:
    """The document, as it grows."""

    def __init__(self):
        self.packages, self.files, self.relations = {}, {}, set()

    def own(self, identifier, name, version, **more):
        self.packages[identifier] = {
            "SPDXID": identifier, "name": name, "versionInfo": version, "downloadLocation": UNKNOWN, "filesAnalyzed": False,
            "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": UNKNOWN, "supplier": UNKNOWN,
        } | more  # fmt: skip
        return identifier

    def debian(self, package):
        spelt = re.sub(r"[^A-Za-z0-9.-]", "-", f"{package.name}-{package.architecture}")
        identifier = f"SPDXRef-Package-deb-{spelt}"
        version = re.sub(r"[+:]", lambda found: "%%%02X" % ord(found[0]), package.version)
        self.packages[identifier] = {
            "SPDXID": identifier, "name": package.name, "versionInfo": package.version, "downloadLocation": UNKNOWN,
            "filesAnalyzed": False, "licenseConcluded": UNKNOWN, "licenseDeclared": licence_of(package), "copyrightText": UNKNOWN,
            "supplier": "Organization: " + (re.sub(r"\s*<.*", "", package.maintainer) or "Debian"),
            "sourceInfo": f"built from Debian's source package {package.source} {package.source_version}",
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": f"pkg:deb/debian/{package.name.replace('+', '%2B')}@{version}?arch={package.architecture}",
            }],
        }  # fmt: skip
        return identifier

    def file(self, path, inside):
        content = path.read_bytes()
        identifier = "SPDXRef-File-" + hashlib.sha256(inside.encode()).hexdigest()[:16]
        self.files[identifier] = {
            "SPDXID": identifier, "fileName": "." + inside, "licenseConcluded": UNKNOWN, "copyrightText": UNKNOWN,
            "licenseInfoInFiles": [UNKNOWN],
            "checksums": [
                {"algorithm": "SHA1", "checksumValue": hashlib.sha1(content).hexdigest()},
                {"algorithm": "SHA256", "checksumValue": hashlib.sha256(content).hexdigest()},
            ],
        }  # fmt: skip
        return identifier

    def relate(self, one, relation, other):
        if one != other:
            self.relations.add((one, relation, other))

    def document(self, name, epoch, excluded, image):
        sums = sorted(entry["checksums"][0]["checksumValue"] for entry in self.files.values())
        self.packages[image] |= {
            "filesAnalyzed": True,
            "packageVerificationCode": {
                "packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest(),
                "packageVerificationCodeExcludedFiles": [excluded],
            },
            "licenseInfoFromFiles": [UNKNOWN],
        }
        by_id = lambda entries: [entries[identifier] for identifier in sorted(entries)]  # noqa: E731
        document = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
            "creationInfo": {
                "created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "creators": ["Tool: quantd-sbom"],
            },
            "packages": by_id(self.packages), "files": by_id(self.files),
            "relationships": [
                {"spdxElementId": one, "relationshipType": relation, "relatedSpdxElement": other}
                for one, relation, other in sorted(self.relations)
            ],
        }  # fmt: skip
        # A name that only this content has, and that is the same for the same content.
        content = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
        document["documentNamespace"] = f"https://spdx.org/spdxdocs/{name}-{uuid.uuid5(uuid.NAMESPACE_URL, content)}"
        return document


def make(root, tree, version, epoch, output, notices):
    here = pathlib.Path(__file__).resolve().parent
    inside = lambda path: "/" + str(path.relative_to(root))  # noqa: E731
    skipped = {output.resolve()}

    def present():
        return sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path.resolve() not in skipped)

    # The names of the notices say whose they are.
    libraries = {path: needed_by(path) for path in present() if not inside(path).startswith(NOTICES)}
    owners = owners_of(inside(path) for path in libraries if path.parent != root)
    owners["/etc/ssl/certs/ca-certificates.crt"] = "ca-certificates"  # it makes this when it is installed
    unknown = [inside(path) for path, names in libraries.items() if names is not None and path.parent != root and inside(path) not in owners]
    if unknown:
        sys.exit(f"sbom.py: no Debian package has {', '.join(unknown)}")
    headers, tools = built_from(tree)
    made_from, made_by = owners_of(headers), owners_of(tools)
    here_too = {name for path, name in owners.items() if (root / path[1:]).exists()}
    packages = packages_of(sorted(here_too | set(made_from.values()) | set(made_by.values())))
    if notices:
        write_notices(here, notices, [packages[name] for name in sorted(here_too)])

    # The distribution of the libraries: data such as nsswitch.conf comes from the building machine, which may be a different one.
    linked = {owners[inside(path)] for path, needs in libraries.items() if needs is not None and inside(path) in owners}
    architecture = sorted({packages[name].architecture for name in linked})
    bill = Bill()
    image = bill.own("SPDXRef-Package-image", "quantd-image", version, primaryPackagePurpose="CONTAINER", licenseConcluded=UNKNOWN,
                     licenseDeclared=UNKNOWN)  # fmt: skip
    quantd = bill.own("SPDXRef-Package-quantd", "quantd", version, primaryPackagePurpose="APPLICATION")
    generated = bill.own("SPDXRef-Package-quantd-generated", "quantd-generated", version, primaryPackagePurpose="SOURCE",
                         comment="C++ that protoc and grpc_cpp_plugin make of proto/ while quantd is built")  # fmt: skip
    identifiers = {name: bill.debian(package) for name, package in packages.items()}
    bill.relate("SPDXRef-DOCUMENT", "DESCRIBES", image)
    bill.relate(image, "CONTAINS", quantd)
    bill.relate(quantd, "CONTAINS", generated)
    for name in here_too:
        bill.relate(image, "CONTAINS", identifiers[name])
    for name in set(made_from.values()):
        bill.relate(identifiers[name], "BUILD_DEPENDENCY_OF", quantd)
    for path, name in made_by.items():
        bill.relate(identifiers[name], "BUILD_TOOL_OF", quantd)
        if "g++" not in path:
            bill.relate(generated, "GENERATED_FROM", identifiers[name])
    of_library = {path.name: identifiers[owners[inside(path)]] for path in libraries if inside(path) in owners}
    for path in present():
        file = bill.file(path, inside(path))
        bill.relate(image, "CONTAINS", file)
        owner = identifiers[owners[inside(path)]] if inside(path) in owners else quantd
        if owner != quantd:
            bill.relate(file, "EXPANDED_FROM_ARCHIVE", owner)
        elif libraries.get(path) is not None:
            bill.relate(file, "GENERATED_FROM", quantd)
        for name in libraries.get(path) or []:
            bill.relate(owner, "DYNAMIC_LINK" if owner == quantd else "DEPENDS_ON", of_library[name])
    document = bill.document(f"quantd-{version}-{'-'.join(architecture)}", epoch, "." + inside(output) if output.is_relative_to(root) else "", image)
    write(output, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode())
    print(f"{len(bill.packages)} packages, {len(bill.files)} files, {len(bill.relations)} relations")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("root", "tree", "output"):
        parser.add_argument(f"--{name}", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", type=int, default=0, help="seconds since 1970, of the document's date")
    parser.add_argument("--notices", type=lambda text: pathlib.Path(text).resolve())
    arguments = parser.parse_args()
    make(arguments.root, arguments.tree, arguments.version, arguments.epoch, arguments.output, arguments.notices)


if __name__ == "__main__":
    main()
