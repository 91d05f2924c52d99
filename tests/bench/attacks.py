#!/usr/bin/env python3
"""What attacks cost an honest client and the server's memory, in a container of 2 GiB: prints rows for the table of deploy/SECURITY.md.

    tests/bench/attacks.py [--seconds=4] [--only=PART] NAME=BINARY ...    # e.g. before=/tmp/quantd after=build/release/server/quantd

The attackers (tests/e2e/attack_table.py) are a process of their own at 127.0.0.2; the client is one at 127.0.0.1 that makes 4-byte calls,
one after the other. The cells: growth of memory at its peak; the client's p99 and its rate, relative to the rate before the attack; threads
that were added; calls that failed; connections that the server closed; how long SIGTERM took right after. `killed`: the server did not
survive. Needs the packages of tests/e2e/requirements.txt; uses cgroups if they can be made, else flags with the same effect."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "e2e"))
LIMIT = 2 << 30


def honest(address, seconds):
    """The client: a process of its own, which shares its interpreter with nobody. Prints JSON."""
    import grpc
    from support import pb_grpc, quantize

    with grpc.insecure_channel(address) as channel:
        stub = pb_grpc.QuantizationServiceStub(channel)
        times, failures, end = [], {}, time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            try:
                stub.Quantize(quantize([1.0]), timeout=5)
            except grpc.RpcError as error:
                failures[error.code().name] = failures.get(error.code().name, 0) + 1
                if error.code() == grpc.StatusCode.UNAVAILABLE:
                    time.sleep(0.01)
            times.append(time.monotonic() - began)
        times.sort()
        print(json.dumps({"calls": len(times), "failed": sum(failures.values()), "codes": failures, "p99": times[int(len(times) * 0.99)]}))


def client(address, seconds):
    return subprocess.Popen([sys.executable, HERE, "--honest", address, str(seconds)], stdout=subprocess.PIPE, text=True)


def answer(process, seconds):
    return json.loads(process.communicate(timeout=seconds + 30)[0])


def measure(binary, name, seconds):
    import support
    from attackers import Attackers
    from small_machine import Cgroup

    support.BINARY = Path(binary).resolve()
    with tempfile.TemporaryDirectory() as folder, Cgroup("memory", LIMIT) as group:
        server = support.Server(folder, before=group.command)
        try:
            alone = answer(client(server.address, 2), 2)
            before = server.status()
            Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # resets VmHWM
            with Attackers(server.address, name, seconds) as attack:
                time.sleep(0.3)
                beside = client(server.address, seconds - 0.5)
                cell = {"alone": alone, "beside": answer(beside, seconds)}
                dead = server.process.poll() is not None
                after = {} if dead else server.status()
                if not dead:
                    began = time.monotonic()
                    server.signal()
                    try:
                        server.process.wait(45)
                        cell["drain"] = time.monotonic() - began
                    except subprocess.TimeoutExpired:
                        cell["drain"] = None
            return cell | {
                "dead": dead,
                "memory": None if dead else after["VmHWM"] - before["VmRSS"],
                "threads": None if dead else after["Threads"] - before["Threads"],
                "closed": attack.result.closed,
            }
        finally:
            for channel in server.channels:
                channel.close()
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()


def text(cell, seconds):
    beside, alone = cell["beside"], cell["alone"]
    if cell["dead"]:
        return f"killed within {seconds:g} s"
    rate = beside["calls"] / (seconds - 0.5) / (alone["calls"] / 2)
    lost = f", {beside['failed']} of {beside['calls']} calls failed" if beside["failed"] else ""
    drain = "over 45 s" if cell["drain"] is None else f"{cell['drain']:.1f} s"
    return (
        f"+{cell['memory'] / 1024:.0f} MiB; p99 {1e3 * beside['p99']:.0f} ms, rate {rate:.2f}{lost}; threads +{cell['threads']}; "
        f"closed {cell['closed']}; SIGTERM {drain}"
    )


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=4)
    arguments.add_argument("--only", default="", help="attacks whose names contain this, or several, by commas")
    arguments.add_argument("binaries", nargs="+", metavar="NAME=BINARY")
    options = arguments.parse_args()
    from attack_table import ATTACKS

    binaries = dict(each.split("=", 1) for each in options.binaries)
    print("| attack | " + " | ".join(binaries) + " |\n|---" * 1 + "|---" * len(binaries) + "|")
    for name in ATTACKS:
        if any(part in name for part in options.only.split(",")):
            cells = [text(measure(binary, name, options.seconds), options.seconds) for binary in binaries.values()]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--honest"]:
        honest(sys.argv[2], float(sys.argv[3]))
    else:
        main()
