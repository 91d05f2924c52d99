"""Listens at a datagram socket, as systemd does for Type=notify, and appends each line that it receives to a file.

manager.py SOCKET FILE
"""

import os
import socket
import sys

with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener, open(sys.argv[2], "w") as heard:
    listener.bind(sys.argv[1])
    os.chmod(sys.argv[1], 0o666)
    while True:
        heard.write(listener.recv(65536).decode())
        heard.flush()
