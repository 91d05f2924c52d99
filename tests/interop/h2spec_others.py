#!/usr/bin/env python3
"""h2spec against other servers, for the table of README.md: h2spec_others.py FOLDER, with h2spec, nginx and nghttpd in the PATH.

Prints for each server how many cases pass, and the outcome of those in which quantd differs. Standard library only.
"""

import contextlib
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import h2spec

NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port} http2; root {folder}; }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def commands(folder, port):
    """The commands that start them; the folder has a page of some bytes."""
    (folder / "index.html").write_text("x" * 1000)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
    return {
        "nginx": ["nginx", "-c", folder / "nginx.conf", "-e", folder / "nginx.log"],
        "nghttpd": ["nghttpd", "--no-tls", "--address=127.0.0.1", f"--htdocs={folder}", str(port)],
    }


@contextlib.contextmanager
def running(command, port):
    server = subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait(timeout=h2spec.MOST)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("nginx", "nghttpd"):
        if shutil.which(name) is None:
            print(f"{name}: not in the PATH")
            continue
        port = free_port()
        version = subprocess.run([name, "-v" if name == "nginx" else "--version"], capture_output=True, text=True)
        with running(commands(folder, port)[name], port):
            outcomes = h2spec.cases(str(port), folder / "report.xml", most=900)  # a case without an answer takes 5 s
        passed = sum(outcome == "passed" for outcome, _ in outcomes.values())
        print(f"{name} ({(version.stdout + version.stderr).strip()}): {passed} of {len(outcomes)} pass")
        for key in h2spec.DIFFERENCES:
            outcome, text = outcomes[key]
            print(f"  {key[0]}: {key[1]}: {outcome} {text[:200]}")
        for key, (outcome, text) in outcomes.items():
            if outcome != "passed" and key not in h2spec.DIFFERENCES:
                print(f"  {outcome}: {key[0]}: {key[1]}: {text[:160]}")


if __name__ == "__main__":
    main()
