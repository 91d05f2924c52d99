"""The Python client beside plain grpc that sends and receives the same bytes, and AsyncClient beside threads.

    python tests/bench/python_client.py [--quick] [--quantd=FILE] [--json=FILE]

Both sides call the same server, in turns within this process (a b, b a); a ratio is the median of those of neighbouring turns.
Plain grpc sends a message that was serialized before and looks at nothing that comes back.
"""

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import grpc
import numpy
import quantd
from quantd import messages, requests

ROOT = Path(__file__).resolve().parents[2]
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class Server:
    def __init__(self, binary):
        self._folder = tempfile.TemporaryDirectory()
        ready = Path(self._folder.name) / "ready.json"
        self._process = subprocess.Popen(
            [binary, "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0", f"--ready_file={ready}",
             f"--max_message_bytes={160 << 20}"], stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{binary} did not start")
            time.sleep(0.02)
        self.address = json.loads(ready.read_text())["grpc"][0]

    def stop(self):
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


def in_turns(first, second, calls, turns):
    """Seconds a call of each, and the median ratio second / first."""
    times = [[], []]
    for turn in range(turns):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            function = (first, second)[side]
            begin = time.perf_counter()
            for _ in range(calls):
                function()
            times[side].append((time.perf_counter() - begin) / calls)
    ratios = [b / a for a, b in zip(*times)]
    return statistics.median(times[0]), statistics.median(times[1]), statistics.median(ratios)


def calls_of(size):
    """Operations on tensors whose larger side has so many bytes: name, Client's method, arguments, options."""
    x = numpy.random.default_rng(1).standard_normal(size // 4).astype(numpy.float32)
    codes = numpy.random.default_rng(2).integers(0, 256, size // 4).astype(numpy.uint8)
    return [
        ("dynamic_quantize", (x,), {}),
        ("quantize", (x, 0.01, 128), {}),
        ("dequantize", (codes, 0.01, 128), {}),
    ]


def beside_grpc(address, sizes, turns):
    rows = []
    with quantd.Client(address) as client, grpc.insecure_channel(address, UNLIMITED) as channel:
        for size, calls in sizes:
            for name, arguments, options in calls_of(size):
                request = requests.BUILDERS[name](*arguments, **options).encode()
                raw = channel.unary_unary(f"/{messages.SERVICE}/{messages.METHODS[name]}")
                method = getattr(client, name)

                def plain():
                    raw(request)

                def ours():
                    method(*arguments, **options)

                for _ in range(3):
                    plain()
                    ours()
                theirs, own, ratio = in_turns(plain, ours, calls, turns)
                rows.append({"call": name, "bytes": size, "grpc_s": theirs, "client_s": own, "ratio": ratio})
    return rows


def threads_calls(address, x, threads, calls):
    """Calls a second of one Client in so many threads."""
    with quantd.Client(address) as client:
        def work():
            for _ in range(calls // threads):
                client.dynamic_quantize(x)

        client.dynamic_quantize(x)
        workers = [threading.Thread(target=work) for _ in range(threads)]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return calls // threads * threads / (time.perf_counter() - begin)


def async_calls(address, x, tasks, calls):
    """Calls a second of one AsyncClient in so many tasks."""
    async def run():
        async with quantd.AsyncClient(address) as client:
            async def work():
                for _ in range(calls // tasks):
                    await client.dynamic_quantize(x)

            await client.dynamic_quantize(x)
            begin = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(tasks)))
            return calls // tasks * tasks / (time.perf_counter() - begin)

    return asyncio.run(run())


def beside_threads(address, calls, turns):
    x = numpy.random.default_rng(3).standard_normal(1024).astype(numpy.float32)
    rows = []
    for concurrency in (8, 32, 128):
        pairs = []
        for turn in range(turns):
            pair = {}
            for side in ("threads", "tasks") if turn % 2 == 0 else ("tasks", "threads"):
                pair[side] = (threads_calls if side == "threads" else async_calls)(address, x, concurrency, calls)
            pairs.append(pair)
        rows.append({
            "in_flight": concurrency,
            "threads_per_s": statistics.median(p["threads"] for p in pairs),
            "tasks_per_s": statistics.median(p["tasks"] for p in pairs),
            "ratio": statistics.median(p["tasks"] / p["threads"] for p in pairs),
        })
    return rows


def named(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--quantd", default=str(ROOT / "build/release/server/quantd"), help="the server (default: %(default)s)")
    parser.add_argument("--json", help="also writes the figures to this file")
    arguments = parser.parse_args()
    turns = 8 if arguments.quick else 20
    sizes = [(4 << 10, 200), (1 << 20, 20), (16 << 20, 3), (64 << 20, 1)]
    server = Server(arguments.quantd)
    gc.collect()
    try:
        calls = beside_grpc(server.address, sizes, turns)
        print("| call | bytes of floats | plain grpc, ms | Client, ms | Client / grpc |\n|---|---:|---:|---:|---:|")
        for row in calls:
            print(f"| {row['call']} | {named(row['bytes'])} | {row['grpc_s'] * 1e3:.2f} | {row['client_s'] * 1e3:.2f} "
                  f"| {row['ratio']:.2f} |")
        tasks = beside_threads(server.address, 1000 if arguments.quick else 2000, turns // 2)
        print("\n| 4 KiB calls in flight | threads, calls/s | AsyncClient, calls/s | AsyncClient / threads |\n|---:|---:|---:|---:|")
        for row in tasks:
            print(f"| {row['in_flight']} | {row['threads_per_s']:.0f} | {row['tasks_per_s']:.0f} | {row['ratio']:.2f} |")
    finally:
        server.stop()
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"calls": calls, "async": tasks}, indent=1))


main()
