"""Runs a program with the restrictions of a systemd unit, as far as that needs no root privileges: its SystemCallFilter, its MemoryDenyWriteExecute,
its RestrictAddressFamilies, and no new privileges.

    confined.py UNIT COMMAND...      (needs systemd-analyze, for the contents of @system-service, and libseccomp.so.2)
"""

import ctypes
import errno
import os
import re
import socket
import subprocess
import sys

ALLOW, EPERM, EAFNOSUPPORT = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.EAFNOSUPPORT
NOT_EQUAL, MASKED_EQUAL = 1, 7
PROT_WRITE, PROT_EXEC = 2, 4


class Comparison(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def settings(unit, name):
    return [value.split() for value in re.findall(rf"^{name}=(.*)$", open(unit).read(), re.MULTILINE)]


def expand(name):
    """The system calls of a set such as @system-service, and of the sets in it."""
    if not name.startswith("@"):
        return {name}
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], check=True, capture_output=True, text=True).stdout
    words = [line.strip() for line in text.splitlines()[1:] if line.startswith(" ") and not line.strip().startswith("#")]
    return set().union(*map(expand, words))


def filtered(unit):
    calls = set()
    for words in settings(unit, "SystemCallFilter"):
        denied = words[0].startswith("~")
        found = set().union(*(expand(word.removeprefix("~")) for word in words))
        calls = calls - found if denied else calls | found
    return calls


def confine(unit):
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    calls = filtered(unit)
    assert len(calls) > 100, calls
    context = library.seccomp_init(EPERM)
    number = lambda name: library.seccomp_syscall_resolve_name(name.encode())  # noqa: E731

    def rule(action, name, *comparisons):
        array = (Comparison * max(len(comparisons), 1))(*comparisons)
        failed = library.seccomp_rule_add_array(context, action, number(name), len(comparisons), array)
        assert failed == 0, (name, failed)

    (families,) = settings(unit, "RestrictAddressFamilies")
    assert settings(unit, "MemoryDenyWriteExecute") == [["true"]]
    for name in sorted(calls - {"socket", "mmap", "mprotect", "pkey_mprotect", "shmat"}):
        if number(name) >= 0:
            rule(ALLOW, name)
    for family in families:
        rule(ALLOW, "socket", Comparison(0, 4, getattr(socket, family), 0))
    both = PROT_WRITE | PROT_EXEC
    for bits in (0, PROT_WRITE, PROT_EXEC):
        rule(ALLOW, "mmap", Comparison(2, MASKED_EQUAL, both, bits))
    for name in ("mprotect", "pkey_mprotect"):
        rule(ALLOW, name, Comparison(2, MASKED_EQUAL, PROT_EXEC, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert library.seccomp_load(context) == 0


def probe():
    """These must fail now, or the test proves nothing."""
    failures = []
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()
        failures.append("AF_NETLINK")
    except OSError:
        pass
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    if libc.mmap(None, 4096, 7, 0x22, -1, 0) not in (None, ctypes.c_void_p(-1).value):
        failures.append("memory that can be written and executed")
    if libc.ptrace(0xFFFF, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
        failures.append("ptrace")
    return failures


def main():
    unit, *command = sys.argv[1:]
    confine(unit)
    if failures := probe():
        sys.exit(f"confined.py: still allowed: {', '.join(failures)}")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
