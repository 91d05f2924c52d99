#!/usr/bin/env python3
"""Folders of links to the programs that suites may use: path.py FOLDER GROUP..., packages.sh's table on stdin.

FOLDER/GROUP gets a link to every program of the group's packages (deploy/packages.sh) and of those that they depend on, FOLDER/base to those of
every Debian. With these as PATH, a program that only some machines have is missing everywhere, so an undeclared package is noticed
at once. FOLDER/base/python3 hides the machine's site packages in the same way.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

INFO = Path("/var/lib/dpkg/info")
BIN = ("/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/", "/usr/games/")
# The packages of debootstrap's smallest variant, the two programs that README requires, and one that containers lack and other Debians
# have: tests that ask systemd about a unit are skipped there.
BASE = ["apt", "debian-archive-keyring", "git", "sudo", "systemd"]


class Installed:
    """The packages of this machine."""

    def __init__(self):
        fields = "${db:Status-Status}\t${Package}\t${binary:Package}\t${Essential}\t${Priority}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
        self.names, self.needs, self.provided, self.required = {}, {}, {}, []
        shown = subprocess.run(["dpkg-query", "--show", f"--showformat={fields}"], capture_output=True, text=True, check=True).stdout
        for line in shown.splitlines():
            status, name, binary, essential, priority, needs, provides = line.split("\t")
            if status != "installed":
                continue
            self.names.setdefault(name, []).append(binary)
            self.needs.setdefault(name, set()).update(need.strip() for need in needs.split(",") if need.strip())
            for one in provides.split(","):
                self.provided.setdefault(one.split("(")[0].strip(), []).append(name)
            if essential == "yes" or priority == "required":
                self.required.append(name)

    def closure(self, wanted):
        """The wanted packages that are installed, and all that they depend on."""
        found, waiting = set(), list(wanted)
        while waiting:
            name = waiting.pop()
            if name in found or name not in self.names:
                continue
            found.add(name)
            for need in self.needs[name]:
                choices = [re.split(r"[ (:]", choice.strip())[0] for choice in need.split("|")]
                direct = [choice for choice in choices if choice in self.names]
                waiting += direct[:1] or [one for choice in choices for one in self.provided.get(choice, [])]
        return found

    def programs(self, packages):
        """Name and path of each program in these packages, including those to which update-alternatives points."""
        owned, found = set(), {}
        for package in packages:
            for binary in self.names[package]:
                file = next((f for f in (INFO / f"{binary}.list", INFO / f"{package}.list") if f.exists()), None)
                if file:
                    owned.update(file.read_text().splitlines())
        for path in sorted(owned):
            folder, _, name = path.rpartition("/")
            if f"{folder}/" in BIN and os.access(path, os.X_OK) and os.path.isfile(path):
                found.setdefault(name, path)
        for folder in ("/usr/bin", "/usr/sbin"):
            for entry in os.scandir(folder):
                if entry.is_symlink() and os.readlink(entry.path).startswith("/etc/alternatives/"):
                    real = os.path.realpath(entry.path)
                    if real in owned or real.removeprefix("/usr") in owned:
                        found.setdefault(entry.name, entry.path)
        return found


def fill(folder, programs, scripts):
    """Makes the folder contain exactly these. Correct links stay untouched: another run may be using them."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.name not in programs and entry.name not in scripts:
            entry.unlink()
    fresh = folder.parent / f".new-{os.getpid()}"
    for name, target in programs.items():
        if name not in scripts and not (os.path.islink(folder / name) and os.readlink(folder / name) == target):
            fresh.symlink_to(target)
            fresh.rename(folder / name)
    for name, text in scripts.items():
        if os.path.islink(folder / name) or not (folder / name).exists() or (folder / name).read_text() != text:
            fresh.write_text(text)
            fresh.chmod(0o755)
            fresh.rename(folder / name)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, groups = Path(sys.argv[1]), sys.argv[2:]
    installed = Installed()
    rows = [line.split() for line in sys.stdin if line.strip()]
    # A base Python without its site packages; -S keeps them out, and an environment that it makes has its own.
    python = shlex.quote(getattr(sys, "_base_executable", "") or sys.executable)
    scripts = {"python3": f'#!/bin/sh\nexec {python} -S "$@"\n'}
    fill(folder / "base", installed.programs(installed.closure(BASE + installed.required)), scripts)
    for group in groups:
        own = [row[1:] for row in rows if row[0] == group]
        programs = installed.programs(installed.closure(package for package, *_ in own))
        # If a program comes from elsewhere than Debian, and packages.sh accepts it for the package, it comes first.
        for command in (command[0] for _, *command in own if command):
            if found := shutil.which(command):
                programs[command] = found
        fill(folder / group, {name: target for name, target in programs.items() if name not in scripts}, {})


if __name__ == "__main__":
    main()
