"""quantize_embeddings in this process beside what people use for the same codes: sentence-transformers' numpy, numpy's packbits,
numkong's scale and cast, plain copies by numpy (usearch casts while it adds, and shows no cast of its own). In turns within one
run; figures are GB/s of float32, medians of the rounds, and the ratio to quantd's with its quartiles. Needs quantd_core; packages
that are missing are left out.

    python tests/bench/embeddings_bench.py [--mib=1] [--rounds=15] [--width=1024] [--threads=1]
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import packages  # noqa: E402
from quantd_core import Engine  # noqa: E402


def contestants(x, ranges, threads):
    """name -> (whose codes, function), quantd's own of each first."""
    engine = Engine(threads=threads)
    uint8, bits = np.empty(x.shape, np.uint8), np.empty((len(x), (x.shape[1] + 7) // 8), np.uint8)
    int8 = np.empty(x.shape, np.int8)
    flat = np.empty(x.size, np.uint8)
    yield "ranges", "quantd", lambda: engine.quantize_embeddings(x, recipe="ranges", ranges=ranges, out=uint8)
    yield "ranges", "numpy astype(uint8), a narrowing copy", lambda: np.copyto(flat, x.view(np.int32).reshape(-1), casting="unsafe")
    module = packages.sentence_transformers()
    if module is not None:
        yield "ranges", "sentence-transformers", lambda: module.quantize_embeddings(x, "uint8", ranges=ranges)
    yield "bits", "quantd", lambda: engine.quantize_embeddings(x, recipe="bits", out=bits)
    yield "bits", "numpy packbits(x > 0)", lambda: np.packbits(x > 0, axis=-1)
    yield "bits", "numpy max, a reading", lambda: x.max()
    yield "unit", "quantd", lambda: engine.quantize_embeddings(x, recipe="unit", out=int8)
    yield "direction", "quantd", lambda: engine.quantize_embeddings(x, recipe="direction", out=int8)
    numkong = packages.find("numkong")
    if numkong is not None:
        # Its cast rounds and its factor is one for all: other codes than any recipe's, and less to do.
        own = numkong.Tensor(x.reshape(-1))
        yield "unit", "numkong scale by 127, astype int8", lambda: numkong.scale(own, alpha=127.0, beta=0.0).astype("int8")
        yield "direction", "numkong scale by 127, astype int8", lambda: numkong.scale(own, alpha=127.0, beta=0.0).astype("int8")


def measure(call, seconds=0.02):
    call()
    passes, begin = 0, time.thread_time()
    while True:
        call()
        passes += 1
        now = time.thread_time() - begin
        if now > seconds:
            return passes / now


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("mib", 1), ("rounds", 15), ("width", 1024), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    rows = (options.mib << 18) // options.width
    x = np.random.default_rng(0).uniform(-1, 1, (rows, options.width)).astype(np.float32)
    ranges = np.stack([np.full(options.width, -0.99, np.float32), np.full(options.width, 0.98, np.float32)])
    calls = list(contestants(x, ranges, options.threads))
    rates = [[] for _ in calls]
    for _ in range(options.rounds):
        for found, (_, _, call) in zip(rates, calls):
            found.append(measure(call) * x.nbytes / 1e9)
    print(f"{rows} x {options.width} float32, {options.mib} MiB")
    own = {}
    for found, (codes, name, _) in zip(rates, calls):
        if name == "quantd":
            own[codes] = found
        ratios = sorted(mine / theirs for mine, theirs in zip(own[codes], found))
        quarter = len(ratios) // 4
        print(f"{codes:10} {name:40} {statistics.median(found):7.2f} GB/s   quantd is {statistics.median(ratios):6.2f} times that "
              f"({ratios[quarter]:.2f} to {ratios[-1 - quarter]:.2f})")


if __name__ == "__main__":
    main()
