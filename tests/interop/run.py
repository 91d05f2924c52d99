#!/usr/bin/env python3
"""gRPC's interop cases: every client of clients.py x every case, plain and over TLS.

  run.py SERVER QUANTD FOLDER [--clients=go,java] [--update]

SERVER is interop_server; QUANTD is the shipped program, for cases without TestService. FOLDER contains the prepared clients.
Prints lines 'pass|fail|skip NAME WHY', separated by tabs. The run must give the table of README.md; --update writes the table. Standard library
only.
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

README = pathlib.Path(__file__).with_name("README.md")
BEGIN, END = "<!-- table: run.py --update -->\n", "<!-- end of table -->\n"
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
    """(client, row of the table) -> {"plain": ..., "TLS": ...}: None, or why it failed."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="interop-") as name, tempfile.TemporaryDirectory(prefix="interop-", dir="/dev/shm") as memory:
        folder = pathlib.Path(name)
        make_certificates(folder)
        for client in chosen:
            client.prepare(folder)
        certificate, key = f"{folder}/server.pem", f"{folder}/server.key"
        for way, flags, shipped_flags in (
            ("plain", [], []),
            ("TLS", ["--use_tls=true", f"--tls_cert_file={certificate}", f"--tls_key_file={key}"], [f"--tls_cert={certificate}", f"--tls_key={key}"]),
        ):
            tls = folder if flags else None
            for program, rows, these in (
                (server, {case: case for case in clients.CASES}, ["--port=0", *flags]),
                (
                    quantd, {shipped_row(case): case for case in clients.SHIPPED},
                    ["--listen=127.0.0.1:0", f"--shared_memory_dir={memory}", *shipped_flags]
                ),
            ):
                with Server(program, folder, *these) as port, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                    runs = {
                        pool.submit(run_case, client, case, port, tls): (client, row)
                        for client in chosen for row, case in rows.items() if not client.lacks_case(case, tls)
                    }
                    for done in concurrent.futures.as_completed(runs):
                        client, row = runs[done]
                        why = done.result()
                        found.setdefault((client.name, row), {})[way] = why
                        print(f"{'fail' if why else 'pass'}\t{client.name}: {row}, {way}\t{why or ''}", flush=True)
    return found


def shipped_row(case):
    return f"{case}, of quantd itself"


def table(found, known):
    """The rows of README.md; for clients that did not run, the present ones."""
    everyone = clients.all_clients(pathlib.Path())
    rows = ["| case | " + " | ".join(client.title for client in everyone) + " |", "|---|" + "---|" * len(everyone)]
    reasons = []
    for case in (*clients.CASES, *map(shipped_row, clients.SHIPPED)):
        cells = []
        for client in everyone:
            why = client.lacks.get(case) or client.lacks_tls.get(case)
            if why is not None and why not in reasons:
                reasons.append(why)
            number = f" ({reasons.index(why) + 1})" if why is not None else ""
            if case in client.lacks:
                cells.append(f"-{number}")
            elif (client.name, case) in found:
                failed = [way for way, why in found[client.name, case].items() if why]
                cells.append(f"fails ({', '.join(failed)})" if failed else f"passes{number}")
            else:
                cells.append(known.get((client.title, case), "not run"))
        rows.append(f"| {case} | " + " | ".join(cells) + " |")
    rows += ["", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))]
    return "\n".join(rows) + "\n"


def read_table(text):
    """(client's title, case) -> cell."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n") if line.startswith("|")]
    return {(title, line[0]): cell for line in lines[2:] for title, cell in zip(lines[0][1:], line[1:])} if lines else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", type=pathlib.Path)
    parser.add_argument("quantd", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--clients", default="")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    everyone = clients.all_clients(arguments.folder.resolve())
    names = arguments.clients.split(",") if arguments.clients else [client.name for client in everyone]
    chosen = [client for client in everyone if client.name in names]
    found = run_all(arguments.server.resolve(), arguments.quantd.resolve(), chosen)
    before, _, rest = README.read_text().partition(BEGIN)
    old, _, after = rest.partition(END)
    new = table(found, read_table(old))
    if arguments.update:
        README.write_text(before + BEGIN + new + END + after)
    elif new != old:
        print("fail\tthe table in tests/interop/README.md\tis not what the run found; run.py --update writes it")
    else:
        print("pass\tthe table in tests/interop/README.md\t")


if __name__ == "__main__":
    main()
