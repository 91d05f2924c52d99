"""What a load needs of a node: the table "Sizing" of deploy/helm/quantd/README.md. sizing.py [--quantd=FILE] [--seconds=5]

CPU is that of the server's process, as counted by the kernel, with as many calls in flight as the row has; it does not depend on the speed of this
client. Cores leave 30 percent free. Memory is what the server divides (deploy/OPERATIONS.md, "Memory"), with all calls in flight under permits.
"""

import argparse
import contextlib
import json
import math
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import grpc
import numpy as np

from quantd import messages, requests

ROOT = Path(__file__).resolve().parents[2]
KIB, MIB = 1 << 10, 1 << 20
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
FREE = 0.7

# The request, its name, how many of it a call carries, how many per second are wanted, calls in flight, flags besides the chart's.
ROWS = [
    ("vectors of 768, one per call", "quantize_embeddings", (1, 768), 1, 50_000, 64, ""),
    ("vectors of 768, 100 per call", "quantize_embeddings", (100, 768), 100, 1_000_000, 16, ""),
    ("vectors of 3072, 100 per call", "quantize_embeddings", (100, 3072), 100, 250_000, 16, ""),
    ("tensors of 1 MiB", "dynamic_quantize", (512, 512), 1, 2_000, 16, ""),
    ("tensors of 16 MiB", "dynamic_quantize", (2048, 2048), 1, 100, 8, ""),
    ("tensors of 256 MiB", "dynamic_quantize", (8192, 8192), 1, 4, 2, "`max_message_bytes: 301989888`"),
]


@contextlib.contextmanager
def server(binary, flags):
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        command = [binary, "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0", f"--ready_file={ready}", "--log_level=error", *flags]
        process = subprocess.Popen(command)
        try:
            while not ready.exists():
                assert process.poll() is None, "the server ended"
                time.sleep(0.01)
            yield process.pid, json.loads(ready.read_text())["grpc"][0]
        finally:
            process.terminate()
            process.wait(60)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(binary, method, shape, in_flight, seconds):
    """(CPU seconds per call, bytes of a request and its answer)"""
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    arguments = {"recipe": "unit", "normalize": True} if method == "quantize_embeddings" else {}
    request = requests.BUILDERS[method](x, **arguments).encode()
    with server(binary, ["--max_message_bytes=301989888"]) as (pid, address):
        sizes, warm, begin = [], threading.Barrier(in_flight + 1), threading.Barrier(in_flight + 1)
        calls = []

        def work():
            with grpc.insecure_channel(address, [*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)]) as channel:
                call = channel.unary_unary(f"/{messages.SERVICE}/{messages.METHODS[method]}")
                sizes.append(len(request) + len(call(request, timeout=60)))
                warm.wait()
                begin.wait()
                until, made = time.monotonic() + seconds, 0
                while made < 4 or time.monotonic() < until:
                    call(request, timeout=60)
                    made += 1
                calls.append(made)

        threads = [threading.Thread(target=work) for _ in range(in_flight)]
        for thread in threads:
            thread.start()
        warm.wait()
        before = cpu_seconds(pid)
        begin.wait()
        for thread in threads:
            thread.join()
        used = cpu_seconds(pid) - before
    return used / sum(calls), sizes[0]


def memory_limit(permits, message):
    """The container's limit at which `permits` bytes fit into the budget of requests and one message into that of receiving."""
    least = 85 * MIB + max(permits * 16 / 9, message * 16 / 7 * 8 / 7)
    return max(256 * MIB, least * 16 / 15)


def rounded(size):
    step = 256 * MIB if size > 512 * MIB else 128 * MIB
    return math.ceil(size / step) * step // MIB


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quantd", default=ROOT / "build/release/server/quantd")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    print("| load | on one core | for | `requests.cpu` | `limits.cpu` | calls in flight | `limits.memory` | flags |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, method, shape, count, rate, in_flight, flags in ROWS:
        cost, size = measure(options.quantd, method, shape, in_flight, options.seconds)
        cores = max(0.1, math.ceil(rate / count * cost / FREE * 10) / 10)
        each = 1 / cost * count
        digits = 10 ** max(0, math.floor(math.log10(each)) - 1)
        limit = rounded(memory_limit(in_flight * size, size))
        print(f"| {name} | {round(each / digits) * digits:,} per second | {rate:,} per second | {cores:g} | {max(1, math.ceil(cores))} "
              f"| {in_flight} | {limit}Mi | {flags} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
