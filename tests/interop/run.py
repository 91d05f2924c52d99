#!/usr/bin/env python3
"""gRPC's interop cases: every client of clients.py x every case, plain and over TLS.

  run.py SERVER QUANTD FOLDER [--clients=go,java]

SERVER is interop_server; QUANTD is the shipped program, for cases without TestService. FOLDER contains the prepared clients.
Prints lines 'pass|fail NAME WHY', separated by tabs. Standard library only.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import clients

PATIENCE = 120  # seconds for one case


class Server:
    """interop_server or quantd on a port of its own, until the block ends."""

    def __init__(self, program, folder, *flags):
        self.program, self.flags = program, flags
        self.ready = folder / "ready.json"

    def __enter__(self):
        self.ready.unlink(missing_ok=True)
        flags = ["--http_listen=", f"--ready_file={self.ready}", "--log_level=error", *self.flags]
        self.process = subprocess.Popen([self.program, *flags], stdout=subprocess.DEVNULL)
        for _ in range(600):
            if self.ready.exists():
                break
            if self.process.poll() is not None:
                sys.exit(f"{self.program} ended with {self.process.returncode}")
            time.sleep(0.05)
        return json.loads(self.ready.read_text())["grpc"][0].split(":")[1]

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        if (status := self.process.wait(timeout=60)) != 0:
            print(f"fail\tthe server's end\tstatus {status}")


def make_certificates(folder):
    """An authority, what it has signed for localhost, and a store of it for Java."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=interop", "-keyout", "ca.key", "-out", "ca.pem",
            "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", *key, "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    (folder / "extensions").write_text("subjectAltName=DNS:localhost\n")
    openssl(
        "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-out", "server.pem",
        "-extfile", "extensions"
    )


def run_case(client, case, port, tls):
    """None if it passes, else the client's last output."""
    command = client.command(case, port, tls)
    environment = {**os.environ, **client.environment(tls)}
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=tls, errors="replace", env=environment)
    except subprocess.TimeoutExpired:
        return f"has not ended after {PATIENCE} s"
    if ran.returncode == 0:
        return None
    said = [line.strip() for line in (ran.stderr + ran.stdout).split("\n") if line.strip()]
    # The first line of a stack of calls.
    said = [line for line in said if not line.startswith("at ")] or [""]
    return f"exit {ran.returncode}: {said[-1][:200]}"


def run_all(server, quantd, chosen):
    """Prints a line for every case of every chosen client, plain and over TLS."""
    with tempfile.TemporaryDirectory(prefix="interop-") as name, tempfile.TemporaryDirectory(prefix="interop-", dir="/dev/shm") as memory:
        folder = pathlib.Path(name)
        make_certificates(folder)
        for client in chosen:
            client.prepare(folder)
        common = ["--listen=127.0.0.1:0", f"--shared_memory_dir={memory}"]
        for way, tls, flags in (
            ("plain", None, []), ("TLS", folder, [f"--tls_cert={folder}/server.pem", f"--tls_key={folder}/server.key"])
        ):
            for program, cases in ((server, clients.CASES), (quantd, clients.SHIPPED)):
                with Server(program, folder, *common, *flags) as port, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                    runs = {
                        pool.submit(run_case, client, case, port, tls): f"{client.name}: {case} of {program.name}, {way}"
                        for client in chosen for case in cases if not client.lacks_case(case, tls)
                    }
                    for done in concurrent.futures.as_completed(runs):
                        why = done.result()
                        print(f"{'fail' if why else 'pass'}\t{runs[done]}\t{why or ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", type=pathlib.Path)
    parser.add_argument("quantd", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--clients", default="")
    arguments = parser.parse_args()
    everyone = clients.all_clients(arguments.folder.resolve())
    names = arguments.clients.split(",") if arguments.clients else [client.name for client in everyone]
    run_all(arguments.server.resolve(), arguments.quantd.resolve(), [client for client in everyone if client.name in names])


if __name__ == "__main__":
    main()
