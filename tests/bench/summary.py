"""Compares the benchmarks with the project's goals: one line per goal, computed from the JSON file that run.sh writes.

    summary.py FILE

If a figure was not measured, its line says so (--quick leaves much out; ONNX Runtime may be missing).
"""

import json
import pathlib
import sys

UINT8_KERNEL = "quantize Reciprocal Integer8 (f32 to u8)"
LIMITS = {"Quantize": "narrowing copy", "DynamicQuantize": "read, then narrowing copy", "Dequantize": "widening copy"}


class Results:
    def __init__(self, path):
        self.all = json.loads(path.read_text())

    def row(self, section, case, **wanted):
        rows = self.all[section]
        return next(row for row in rows if row["case"] == case and all(row.get(key) == value for key, value in wanted.items()))

    def ratio(self, section, case, beside, figure="rate", **wanted):
        """Our rate divided by theirs."""
        return self.row(section, case, beside=beside, **wanted)["ratios"][figure]["median"]

    def in_process(self, section, name, size, threads, beside):
        """threads: 1, or "all"."""
        counts = [int(row["case"].split(", ")[-1].split()[0]) for row in self.all[section]]
        count = max(counts) if threads == "all" else threads
        return self.ratio(section, f"{name}, {size}, {count} thread" + "s" * (count > 1), beside)

    def kernel(self, size, threads):
        return self.in_process("kernels", UINT8_KERNEL, size, threads, "narrow 4:1")

    def to_copy(self, name, size, threads):
        return self.in_process("operations", name, size, threads, LIMITS[name])

    def to_ort(self, name, size, threads):
        return self.in_process("operations", name, size, threads, "ONNX Runtime")

    def python(self, section, case, beside):
        """Our time divided by theirs."""
        return self.row(section, case)["ratios"][beside]["median"]

    def over_the_core(self, memory):
        seconds = self.row("engine", f"1,024 floats, {memory}")["seconds"]
        return (seconds["quantd.local()"] - seconds["core"]) * 1e6

    def faults(self, case):
        return self.row("table", case)["figures"]["faults_per_call"]

    def memory(self, name):
        return self.row("memory", name)["value"]


def goals(r):
    """What is measured, the comparison, the goal, and the function that computes it."""
    calls = ("Quantize", "DynamicQuantize", "Dequantize")
    sizes = ("1 MiB", "16 MiB", "256 MiB")
    for threads in (1, "all"):
        suffix = f", {threads} thread" + ("s" if threads == "all" else "")
        for size in sizes:
            of_copy = 0.6 if size == "1 MiB" else 0.9
            yield f"UINT8 kernel {size}{suffix} / narrowing copy", ">=", of_copy, r.kernel, size, threads
            yield f"Quantize {size}{suffix} / narrowing copy", ">=", of_copy, r.to_copy, "Quantize", size, threads
        yield f"Quantize 1 MiB{suffix} / ONNX Runtime", ">=", 3, r.to_ort, "Quantize", "1 MiB", threads
        for size, to_ort in (("1 MiB", 2.5), ("256 MiB", 1.15)):
            row = ("DynamicQuantize", size, threads)
            yield f"DynamicQuantize {size}{suffix} / ONNX Runtime", ">=", to_ort, r.to_ort, *row
            yield f"DynamicQuantize {size}{suffix} / read, then copy", ">=", 0.85, r.to_copy, *row
        for size in ("1 MiB", "256 MiB"):
            yield f"Dequantize {size}{suffix} / ONNX Runtime", ">=", 2, r.to_ort, "Dequantize", size, threads
            yield f"Dequantize {size}{suffix} / widening copy", ">=", 0.85, r.to_copy, "Dequantize", size, threads
            for name in calls:
                bound = lambda *row: r.to_ort(*row) / r.to_copy(*row)  # noqa: E731
                text = f"what bounds {name} {size}{suffix} / ONNX Runtime, for comparison"
                yield text, None, None, bound, name, size, threads
    for case in ("1 MiB x 4", "16 MiB x 1"):
        for call in calls:
            row = ("table", f"{call} tcp {case}", "echo")
            yield f"{call} {case}: rate / echo's", ">=", 0.95, r.ratio, *row, "rate"
            yield f"{call} {case}: server CPU / echo's", "<=", 1.1, r.ratio, *row, "cpu"
    for call in calls:
        yield f"{call} 4 B x 1: p50 / echo's", "<=", 1.05, r.ratio, "table", f"{call} tcp 4 B x 1", "echo", "p50"
        for case in ("4 B x 4", "4 B x 32", "64 KiB x 4"):
            yield f"{call} {case}: rate / echo's", ">=", 0.95, r.ratio, "table", f"{call} tcp {case}", "echo"
    stream = ("stream", "Stream tcp 4 B x 32 x 8")
    yield "Stream, 32 of 4 B, 8 items in flight / unary x 32", ">=", 1.7, r.ratio, *stream, "quantd's calls"
    yield "the echo's stream / its unary, for comparison", None, None, r.ratio, *stream, "echo's calls"
    for case, rate in (("64 KiB x 8", 6), ("1 MiB x 4", 11)):
        row = ("peers", f"DynamicQuantize tcp {case}")
        yield f"{case}: rate / grpc.aio + ONNX Runtime", ">=", rate, r.ratio, *row, "grpc.aio"
        yield f"{case}: p99 / grpc.aio + ONNX Runtime", "<=", 0.2, r.ratio, *row, "grpc.aio", "p99"
        yield f"{case}: the echo's rate is quantd's times", None, None, lambda *a: 1 / r.ratio(*a), *row, "echo"
    yield "1 MiB x 4: rate / C++ callback + ONNX Runtime", ">=", 1.6, r.ratio, *row, "C++ callback"
    for size in ("4 KiB", "64 MiB"):
        for call in ("dynamic_quantize", "quantize", "dequantize"):
            yield f"Python's {call} {size}: time / plain grpc's", "<=", 1.3, r.python, "client", f"{call} {size}", "grpc"
    yield "Python, 4 KiB x 128: AsyncClient's calls/s / threads'", ">=", 2, lambda: 1 / r.python("async", "x 128", "threads")
    for call in calls:
        yield f"{call} 1 MiB x 4: page faults a request", "<", 3, r.faults, f"{call} tcp 1 MiB x 4"
    yield "MiB 10 s after 64 x 16 MiB, less 2 x idle", "<=", 64, lambda: (
        r.memory("10 s after that burst") - 2 * r.memory("idle")
    )
    yield "MiB more after 20,000 mixed requests than after 2,000", "<=", 4, lambda: (
        r.memory("10 s after 20,000") - r.memory("10 s after 2,000 requests of 4 B to 4 MiB")
    )
    beside = ("beside", "beside Quantize tcp 256 MiB x 1")
    yield "4 B beside 256 MiB: p99 / alone", "<=", 5, r.ratio, *beside, "alone", "p99"
    yield "the same at the echo, for comparison", None, None, r.ratio, *beside, "echo alone", "p99"
    for memory in ("new", "out="):
        row = ("engine", f"64 MiB, {memory}")
        yield f"Python, 64 MiB DynamicQuantize, {memory}: time / the C++ core's", "<=", 1.1, r.python, *row, "core"
        faster = lambda *a: 1 / r.python(*a)  # noqa: E731
        yield f"Python, 64 MiB DynamicQuantize, {memory}: ONNX Runtime's time / ours", ">=", 3, faster, *row, "ONNX Runtime"
        yield f"Python, 1,024 floats, {memory}: us over the C++ core", "<=", 5, r.over_the_core, memory


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
