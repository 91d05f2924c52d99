"""Turns of several ways to do something in Python, their table and their JSON; the Python version of turns.h and
report.h."""

import contextlib
import json
import multiprocessing
import statistics
import subprocess
import tempfile
import time
import zlib
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20


def size_text(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def time_text(seconds):
    unit, name = next(pair for pair in ((1, "s"), (1e-3, "ms"), (1e-6, "us")) if seconds >= pair[0] or pair[1] == "us")
    return f"{seconds / unit:.2f} {name}" if seconds < 10 * unit else f"{seconds / unit:.0f} {name}"


def cpu_name():
    return next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "an unknown CPU")


def timed(call, calls, clock=time.perf_counter):
    """The seconds of each call."""
    if isinstance(call, Apart):
        return call.timed(calls)
    times = []
    for _ in range(calls):
        begin = clock()
        call()
        times.append(clock() - begin)
    return times


class Apart:
    """A side in a process of its own: threads that look for work after a call (those of ONNX Runtime do so for 40 ms) hold no
    pool, heap or lock of another side's."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        context.Process(target=_serve, args=(theirs,), daemon=True).start()

    def make(self, make, *arguments):
        """From now on the side is the call that make(*arguments) returns there. Returns a checksum of the call's first array."""
        return self._ask((make, arguments))

    def timed(self, calls):
        return self._ask(calls)

    def _ask(self, question):
        self._pipe.send(question)
        return self._pipe.recv()


def _serve(pipe):
    call = None
    with contextlib.suppress(EOFError):
        while True:
            question = pipe.recv()
            if isinstance(question, int):
                pipe.send(timed(call, question))
            else:
                make, arguments = question
                call = make(*arguments)
                pipe.send(zlib.crc32(call()[0]))


class Report:
    def __init__(self):
        self.sections, self._rows, self._names = {}, [], []

    def begin(self, section, title):
        self._rows, self._names = self.sections.setdefault(section, []), []
        print(f"\n{title}, on {cpu_name()}", flush=True)

    def measure(self, case, sides, rounds, calls=1, per=1, of=min, pause=0.0, clock=time.perf_counter, more=None, shown=True):
        """Sides: name -> what to call, ours first. A turn consists of `calls` calls, each of `per` things; `of` reduces its
        times to one. This is divided by that of its neighbour in the round; the next round is in reverse order. more: a
        computed column. Returns the row, which it prints if `shown`."""
        taken = {name: [] for name in sides}
        for call in sides.values():
            timed(call, 1)
        for turn in range(rounds):
            for name in list(sides) if turn % 2 == 0 else reversed(list(sides)):
                time.sleep(pause)
                taken[name].append(of(timed(sides[name], calls, clock)) / per)
        ours, *others = sides
        seconds = {name: statistics.median(times) for name, times in taken.items()}
        ratios = {}
        for name in others:
            low, median, high = statistics.quantiles([a / b for a, b in zip(taken[ours], taken[name])], n=4)
            ratios[name] = {"median": median, "quartiles": [low, high]}
        seconds |= more(seconds) if more else {}
        best = {name: min(times) for name, times in taken.items()}
        row = {"case": case, "side": ours, "seconds": seconds, "best": best, "ratios": ratios}
        self._rows.append(row)
        if not shown:
            return row
        if self._names != list(seconds):
            self._names = list(seconds)
            print("\n| |", " | ".join(name + (f" | {ours} / it" if name in others else "") for name in seconds), "|")
            print("|---|" + "---|" * (len(seconds) + len(ratios)))
        cells = []
        for name, value in seconds.items():
            cells.append(time_text(value))
            if name in ratios:
                low, high = ratios[name]["quartiles"]
                cells.append(f"{ratios[name]['median']:.2f} ({low:.2f} to {high:.2f})")
        print(f"| {case} | " + " | ".join(cells) + " |", flush=True)
        return row

    def write(self, path):
        """Next to the sections that other programs have written."""
        path = Path(path)
        path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | self.sections, indent=1))


@contextlib.contextmanager
def process(command, ready):
    """The gRPC addresses that a server writes into its ready file."""
    started = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not ready.exists():
            if started.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{command[0]} did not start")
            time.sleep(0.02)
        yield json.loads(ready.read_text())["grpc"]
    finally:
        started.terminate()
        started.wait()


@contextlib.contextmanager
def server(binary, shared_memory):
    """The addresses of a quantd, TCP and Unix."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        command = [binary, f"--listen=127.0.0.1:0,unix:{folder}/quantd", "--http_listen=", f"--ready_file={ready}",
                   f"--max_message_bytes={1 << 30}", f"--shared_memory_dir={shared_memory}"]  # fmt: skip
        with process(command, ready) as addresses:
            yield addresses
