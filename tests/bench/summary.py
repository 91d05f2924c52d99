"""Prints what the benchmarks say about the project's goals: a line a goal, computed from the JSON files that run.sh writes.

    summary.py FOLDER

A figure that needs what was not measured (--quick leaves much out; ONNX Runtime may be missing) says so.
"""

import json
import pathlib
import sys

MIB = 1 << 20
UINT8_KERNEL = "quantize Reciprocal Integer8 (f32 to u8)"


class Results:
    def __init__(self, folder):
        self.all = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}

    def kernel(self, name, size, threads):
        """Of kernels_bench. threads: 1, or "all"."""
        rows = self.all["kernels"]["results"]
        return pick(rows, name=name, bytes=size, threads=count(rows, threads))["ratio"]

    def to_copy(self, name, size, threads):
        rows = self.all["operations"]["results"]
        return pick(rows, operation=name, variant=f"{size // MIB} MiB", threads=count(rows, threads))["ratio"]

    def peer_kernel(self, name, size, threads):
        rows = self.all["peers_kernels"]["results"]
        return pick(rows, operation=name, bytes=size, threads=count(rows, threads))

    def to_ort(self, *row):
        return self.peer_kernel(*row)["to_onnxruntime"]

    def copy_to_ort(self, *row):
        measured = self.peer_kernel(*row)
        return measured["limit_gb_per_s"] / measured["onnxruntime_gb_per_s"]

    def call(self, call, size, in_flight, *path):
        return follow(pick(self.all["rpc"]["table"], call=call, transport="tcp", x_bytes=size, in_flight=in_flight), path)

    def peer(self, server, size, in_flight, ratio):
        row = pick(self.all["peers_rpc"], server=server, x_bytes=size, in_flight=in_flight)
        return row["quantd_to"][ratio]["median"]

    def python(self, call, size):
        return pick(self.all["python_client"]["calls"], call=call, bytes=size)["ratio"]

    def tasks(self, in_flight):
        return pick(self.all["python_client"]["async"], in_flight=in_flight)["ratio"]

    def stream(self, server):
        return self.all["rpc"]["stream"][server]["stream_8_to_unary"]["median"]

    def beside(self, server):
        row = pick(self.all["rpc"]["beside"], server=server, large_bytes=256 * MIB, in_flight=1)
        return row["p99_beside_seconds"] / row["p99_alone_seconds"]

    def engine(self, over, under):
        return pick(self.all["engine"]["large"]["ratios"], ratio=f"{over} / {under}")["median"]

    def engine_over_the_core(self, memory):
        return self.all["engine"]["small"]["over_the_core"][memory]

    def memory(self, name):
        return self.all["rpc"]["memory"][name] / MIB


def count(rows, threads):
    return max(row["threads"] for row in rows) if threads == "all" else threads


def pick(rows, **wanted):
    return next(row for row in rows if all(row.get(key) == value for key, value in wanted.items()))


def follow(value, path):
    for key in path:
        value = value[key]
    return value


def goals(r):
    """What, the comparison, the goal, how it is computed."""
    calls = ("Quantize", "DynamicQuantize", "Dequantize")
    sizes = ((MIB, "1 MiB"), (16 * MIB, "16 MiB"), (256 * MIB, "256 MiB"))
    for threads in (1, "all"):
        suffix = f", {threads} thread" + ("s" if threads == "all" else "")
        for size, text in sizes:
            of_copy = 0.6 if size == MIB else 0.9
            yield f"UINT8 kernel {text}{suffix} / narrowing copy", ">=", of_copy, r.kernel, UINT8_KERNEL, size, threads
            yield f"Quantize {text}{suffix} / narrowing copy", ">=", of_copy, r.to_copy, "Quantize", size, threads
        yield f"Quantize 1 MiB{suffix} / ONNX Runtime", ">=", 3, r.to_ort, "Quantize", MIB, threads
        for size, text, to_ort in ((MIB, "1 MiB", 2.5), (256 * MIB, "256 MiB", 1.15)):
            row = ("DynamicQuantize", size, threads)
            yield f"DynamicQuantize {text}{suffix} / ONNX Runtime", ">=", to_ort, r.to_ort, *row
            yield f"DynamicQuantize {text}{suffix} / read, then copy", ">=", 0.85, r.to_copy, *row
        for size, text in (sizes[0], sizes[2]):
            yield f"Dequantize {text}{suffix} / ONNX Runtime", ">=", 2, r.to_ort, "Dequantize", size, threads
            yield f"Dequantize {text}{suffix} / widening copy", ">=", 0.85, r.to_copy, "Dequantize", size, threads
        for size, text in (sizes[0], sizes[2]):
            for name in calls:
                text_of = f"what bounds {name} {text}{suffix} / ONNX Runtime, for comparison"
                yield text_of, None, None, r.copy_to_ort, name, size, threads
    for size, in_flight, text in ((MIB, 4, "1 MiB x 4"), (16 * MIB, 1, "16 MiB x 1")):
        for call in calls:
            yield f"{call} {text}: rate / echo's", ">=", 0.95, r.call, call, size, in_flight, "ratios", "rate", "median"
            yield f"{call} {text}: server CPU / echo's", "<=", 1.1, r.call, call, size, in_flight, "ratios", "cpu", "median"
    for call in calls:
        yield f"{call} 4 B x 1: p50 / echo's", "<=", 1.05, r.call, call, 4, 1, "ratios", "p50", "median"
        yield f"{call} 4 B x 32: rate / echo's", ">=", 0.95, r.call, call, 4, 32, "ratios", "rate", "median"
    yield "Stream, 32 of 4 B, 8 items in flight / unary x 32", ">=", 1.7, r.stream, "quantd"
    yield "the echo's stream / its unary, for comparison", None, None, r.stream, "echo"
    for size, in_flight, text, rate in ((64 << 10, 8, "64 KiB x 8", 6), (MIB, 4, "1 MiB x 4", 11)):
        yield f"{text}: rate / grpc.aio + ONNX Runtime", ">=", rate, r.peer, "aio", size, in_flight, "rate"
        yield f"{text}: p99 / grpc.aio + ONNX Runtime", "<=", 0.2, r.peer, "aio", size, in_flight, "p99"
        yield f"{text}: the echo's rate is quantd's times", None, None, lambda *a: 1 / r.peer(*a), "echo", size, in_flight, "rate"
    yield "1 MiB x 4: rate / C++ callback + ONNX Runtime", ">=", 1.6, r.peer, "callback", MIB, 4, "rate"
    for size, text in ((4 << 10, "4 KiB"), (64 * MIB, "64 MiB")):
        for call in ("dynamic_quantize", "quantize", "dequantize"):
            yield f"Python's {call} {text}: time / plain grpc's", "<=", 1.3, r.python, call, size
    yield "Python, 4 KiB x 128: AsyncClient's calls/s / threads'", ">=", 2, r.tasks, 128
    for call in calls:
        yield f"{call} 1 MiB x 4: page faults a request", "<", 3, r.call, call, MIB, 4, "quantd", "faults_per_call"
    yield "MiB 10 s after 64 x 16 MiB, less 2 x idle", "<=", 64, lambda: (
        r.memory("burst_rested_bytes") - 2 * r.memory("idle_bytes")
    )
    yield "MiB more after 20,000 mixed requests than after 2,000", "<=", 4, lambda: (
        r.memory("mixed_20000_rested_bytes") - r.memory("mixed_2000_rested_bytes")
    )
    yield "4 B beside 256 MiB: p99 / alone", "<=", 5, r.beside, "quantd"
    yield "the same at the echo, for comparison", None, None, r.beside, "echo"
    for memory, core in (("new", "new"), ("out=", "reused")):
        ours = f"quantd_core, {memory}"
        yield f"Python, 64 MiB DynamicQuantize, {memory}: time / the C++ core's", "<=", 1.1, r.engine, ours, f"core, {core}"
        yield f"Python, 64 MiB DynamicQuantize, {memory}: ONNX Runtime's time / ours", ">=", 3, r.engine, "ONNX Runtime", ours
        yield f"Python, 1,024 floats, {memory}: us over the C++ core", "<=", 5, r.engine_over_the_core, memory


COMPARE = {">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b, "<": lambda a, b: a < b}


def main():
    results = Results(pathlib.Path(sys.argv[1]))
    print("| what | goal | figure | reached |\n|---|---|---|---|")
    for text, sign, goal, compute, *arguments in goals(results):
        wanted = f"{sign} {goal:g}" if sign else ""
        try:
            value = compute(*arguments)
        except (KeyError, StopIteration, TypeError):
            print(f"| {text} | {wanted} | not measured | |")
            continue
        reached = "" if sign is None else "yes" if COMPARE[sign](round(value, 2), goal) else "NO"
        print(f"| {text} | {wanted} | {value:.2f} | {reached} |")


main()
