"""When to send a tensor, and when not: DynamicQuantize of float32 to uint8, from Python, by every way there is.

    break_even.py --quantd=FILE [--quick] [--json=FILE]

The ways take turns; the table has the medians of their calls. "cluster" is not measured: it is TCP on this machine and the time
that the bytes take over 10 Gbit/s, there and back, with 0.1 ms for the round trip.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import quantd

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = [KIB, 16 * KIB, 256 * KIB, 4 * MIB, 64 * MIB, 256 * MIB]


def by_numpy(x):
    """As one writes it, and as exact: DynamicQuantizeLinear."""
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    zero_point = np.clip(np.rint(-low / scale), 0, 255)
    return np.clip(np.rint(x / scale) + zero_point, 0, 255).astype(np.uint8)


def text(seconds):
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2g} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms"


def size_text(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def medians(ways, seconds):
    taken = {name: [] for name in ways}
    for call in ways.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[next(iter(ways))]) < 3:
        for name, call in ways.items():
            begin = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - begin)
    return {name: statistics.median(times) for name, times in taken.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quantd", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        ready = Path(folder) / "ready.json"
        flags = [f"--listen=127.0.0.1:0,unix:{folder}/quantd", "--http_listen=", f"--ready_file={ready}"]
        flags += [f"--max_message_bytes={GIB}", f"--shared_memory_dir={memory}"]
        server = subprocess.Popen([options.quantd, *flags], stderr=subprocess.DEVNULL)
        try:
            while not ready.exists():
                if server.poll() is not None:
                    raise SystemExit(f"{options.quantd} did not start")
                time.sleep(0.02)
            tcp, unix = json.loads(ready.read_text())["grpc"]
            rows = measure(tcp, unix, memory, 1 if options.quick else 4)
        finally:
            server.terminate()
            server.wait()
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


def measure(tcp, unix, memory, seconds):
    local = quantd.local()
    print("| x | numpy | in process | shared memory | Unix socket | TCP | cluster, computed |\n|---|---|---|---|---|---|---|")
    rows = []
    with quantd.Client(tcp, shared_memory_dir=memory) as over_tcp, quantd.Client(unix) as over_unix:
        for size in SIZES:
            x = np.random.default_rng(1).standard_normal(size // 4).astype(np.float32)
            expected = by_numpy(x)
            for client in (local, over_tcp, over_unix):
                np.testing.assert_array_equal(client.dynamic_quantize(x).y, expected)
            with over_tcp.shared(x) as shared_x, over_tcp.shared_empty(x.shape, "uint8") as shared_y:
                ways = {
                    "numpy": lambda: by_numpy(x),
                    "in process": lambda: local.dynamic_quantize(x),
                    "shared memory": lambda: over_tcp.dynamic_quantize(shared_x, out=shared_y),
                    "Unix socket": lambda: over_unix.dynamic_quantize(x),
                    "TCP": lambda: over_tcp.dynamic_quantize(x),
                }
                row = medians(ways, seconds)
            row["cluster, computed"] = row["TCP"] + 1.25 * size / 1.25e9 + 1e-4
            print(f"| {size_text(size)} | " + " | ".join(map(text, row.values())) + " |", flush=True)
            rows.append({"x_bytes": size, **row})
    return rows


if __name__ == "__main__":
    main()
