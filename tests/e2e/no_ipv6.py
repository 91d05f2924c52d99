"""Starts a command as on a kernel without IPv6: no_ipv6.py COMMAND...

A seccomp filter answers socket(AF_INET6, ...) with EAFNOSUPPORT, for the command and everything that it starts; needs no privileges.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

SOCKET_CALL = {"x86_64": 41, "aarch64": 198}[platform.machine()]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS; BPF_JMP | BPF_JEQ | BPF_K; BPF_RET | BPF_K
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
PROGRAM = [
    (LOAD, 0, 0, 0),  # seccomp_data.nr
    (EQUAL, 0, 3, SOCKET_CALL),
    (LOAD, 0, 0, 16),  # seccomp_data.args[0]
    (EQUAL, 0, 1, socket.AF_INET6),
    (RETURN, 0, 0, ERRNO | errno.EAFNOSUPPORT),
    (RETURN, 0, 0, ALLOW),
]
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in PROGRAM))
    program = struct.pack("HxxxxxxP", len(PROGRAM), ctypes.addressof(code))
    failed = libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)
    if failed:
        sys.exit(f"no_ipv6.py: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
