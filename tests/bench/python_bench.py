"""Ways of quantizing from Python, compared: python_bench.py [SECTION...] [--quick] [--json=FILE] [--quantd=FILE]

client      quantd.Client, and plain grpc that sends and receives the same bytes, serialized before
async       AsyncClient, and threads with a Client: calls of 4 KiB
break_even  every way to have a tensor quantized, from 1 KiB to 256 MiB; beside them ONNX Runtime in a process of its own, and the
            service that one would write with grpc.aio and ONNX Runtime (aio_server.py). "cluster" is not measured: it is TCP on this
            machine plus the time that the bytes take over 10 Gbit/s, there and back, with 0.1 ms for the round trip.
            plot.py draws it (run.sh --plot)
engine      quantd.local() and ONNX Runtime, each in a process of its own, by size and threads
embeddings  quantize_embeddings, what people use for the same codes, and plain copies

The sides take turns. If one is ONNX Runtime, a turn begins when all threads sleep: after work, its threads look for more for 40 ms.
"""

import argparse
import asyncio
import contextlib
import itertools
import statistics
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import grpc
import models
import numpy as np
import onnx
import onnxruntime
from python_turns import KIB, MIB, Apart, Report, process, server, size_text

import quantd
from quantd import messages, requests

ROOT = Path(__file__).resolve().parents[2]
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def floats(count):
    return np.random.default_rng(1).standard_normal(count).astype(np.float32)


def client(report, options):
    report.begin("client", "The Python client beside plain grpc, by size of the floats")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory, server(options.quantd, memory) as (tcp, _):
        with quantd.Client(tcp) as ours, grpc.insecure_channel(tcp, UNLIMITED) as channel:
            for size, calls in ((4 * KIB, 200), (MIB, 20), (16 * MIB, 3), (64 * MIB, 1)):
                x, codes = floats(size // 4), np.random.default_rng(2).integers(0, 256, size // 4).astype(np.uint8)
                calls_of = {"dynamic_quantize": (x,), "quantize": (x, 0.01, 128), "dequantize": (codes, 0.01, 128)}
                for name, arguments in calls_of.items():
                    request = requests.make(name, *arguments).encode()
                    raw = channel.unary_unary(f"/{messages.SERVICE}/{messages.METHODS[name]}")
                    sides = {"Client": partial(getattr(ours, name), *arguments), "grpc": partial(raw, request)}
                    report.measure(f"{name} {size_text(size)}", sides, 8 if options.quick else 20, calls, of=statistics.fmean)


def by_threads(address, x, threads, calls):
    with quantd.Client(address) as ours:
        def work():
            for _ in range(calls // threads):
                ours.dynamic_quantize(x)

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def by_tasks(address, x, tasks, calls):
    async def work(ours):
        for _ in range(calls // tasks):
            await ours.dynamic_quantize(x)

    async def run():
        async with quantd.AsyncClient(address) as ours:
            await asyncio.gather(*(work(ours) for _ in range(tasks)))

    asyncio.run(run())


def asynchronous(report, options):
    report.begin("async", "AsyncClient beside threads, 4 KiB: time of a call, by calls in flight")
    x, calls = floats(1024), 1024 if options.quick else 2048
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory, server(options.quantd, memory) as (tcp, _):
        for count in (8, 32, 128):
            ways = {"AsyncClient": by_tasks, "threads": by_threads}
            sides = {name: partial(way, tcp, x, count, calls) for name, way in ways.items()}
            report.measure(f"x {count}", sides, 4 if options.quick else 10, per=calls)


def by_numpy(x):
    """As one would write it, but equally exact: DynamicQuantizeLinear."""
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    zero_point = np.clip(np.rint(-low / scale), 0, 255)
    return np.clip(np.rint(x / scale) + zero_point, 0, 255).astype(np.uint8)


@contextlib.contextmanager
def onnxruntime_service(folder):
    """Calls DynamicQuantize of aio_server.py, with a serialized request; what comes is a serialized response."""
    model, ready = Path(folder) / "model.onnx", Path(folder) / "ready.json"
    model.write_bytes(models.model("dynamic_quantize").SerializeToString())
    with process([sys.executable, str(Path(__file__).with_name("aio_server.py")), str(ready), str(model)], ready) as addresses:
        with grpc.insecure_channel(addresses[0], UNLIMITED) as channel:
            yield channel.unary_unary(f"/{messages.SERVICE}/DynamicQuantize")


def break_even(report, options):
    report.begin("break_even", "When to send a tensor, and when not: DynamicQuantize of float32 to uint8")
    local, onnx_runtime = quantd.local(), Apart()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory, tempfile.TemporaryDirectory() as folder:
        with (
            server(options.quantd, memory) as (tcp, unix), onnxruntime_service(folder) as aio,
            quantd.Client(tcp, shared_memory_dir=memory) as over_tcp, quantd.Client(unix) as over_unix,
        ):
            for size in (KIB, 16 * KIB, 256 * KIB, 4 * MIB, 64 * MIB, 256 * MIB):
                x = floats(size // 4)
                request = requests.make("dynamic_quantize", x).encode()
                onnx_runtime.make(theirs, "dynamic_quantize", "float32", "uint8", False, size, 0, False)
                for ours in (local, over_tcp, over_unix):
                    np.testing.assert_array_equal(ours.dynamic_quantize(x).y, by_numpy(x))
                with over_tcp.shared(x) as shared_x, over_tcp.shared_empty(x.shape, "uint8") as shared_y:
                    sides = {
                        "in process": lambda: local.dynamic_quantize(x),
                        "numpy": lambda: by_numpy(x),
                        "ONNX Runtime": onnx_runtime,
                        "shared memory": lambda: over_tcp.dynamic_quantize(shared_x, out=shared_y),
                        "Unix socket": lambda: over_unix.dynamic_quantize(x),
                        "TCP": lambda: over_tcp.dynamic_quantize(x),
                        "grpc.aio, ONNX Runtime": lambda: aio(request),
                    }
                    rounds = max(5, min(100, 1024 * MIB // size) // (4 if options.quick else 1))
                    report.measure(size_text(size), sides, rounds, max(1, min(20, 4 * MIB // size)), pause=0.06,
                                   more=lambda row: {"cluster, computed": row["TCP"] + 1.25 * size / 1.25e9 + 1e-4})


# The types of values and codes, and whether there is a scale per row.
PEERS = {
    "FLOAT, UINT8, one scale": ("float32", "uint8", False),
    "FLOAT, INT8, a scale per row": ("float32", "int8", True),
    "FLOAT16, UINT8, one scale": ("float16", "uint8", False),
}


def arguments_of(name, value, code, rows, size):
    """x of as many elements as FLOATs of `size` bytes, scale and zero point; and an array for y."""
    values = (floats(size // 4) * 2).reshape((-1, 1024) if rows else -1)
    codes = np.rint(values * 10).astype("int8").view(code)
    scales = values.shape[:1] if rows else ()
    given = {"scale": np.full(scales, 0.04, value), "zero_point": np.full(scales, 0 if code == "int8" else 128, code)}
    x, y = (codes, values.astype(value)) if name == "dequantize" else (values.astype(value), codes)
    return {"x": x} | ({} if name == "dynamic_quantize" else given), np.zeros_like(y)


def ours(name, value, code, rows, size, threads, reuse):
    given, out = arguments_of(name, value, code, rows, size)
    options = {"axis": 0 if rows else None, "out": out if reuse else None} | ({"output_type": value} if name == "dequantize" else {})
    call = getattr(quantd.local(threads=threads), name)
    return lambda: (call(**given, **options).y,)


def theirs(name, value, code, rows, size, threads, reuse):
    given, out = arguments_of(name, value, code, rows, size)
    types, settings = (onnx.helper.np_dtype_to_tensor_dtype(np.dtype(each)) for each in (value, code)), onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    model = models.model(name, *types, rows).SerializeToString()
    session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    if not reuse:
        return lambda: session.run(None, given)
    bound = session.io_binding()
    for each, array in given.items():
        bound.bind_cpu_input(each, array)
    bound.bind_output("y", "cpu", 0, out.dtype, out.shape, out.ctypes.data)
    for each in session.get_outputs()[1:]:
        bound.bind_output(each.name)
    return lambda: (session.run_with_iobinding(bound), out)[1:]


def engine(report, options):
    report.begin("engine", "quantd.local() and ONNX Runtime, each in a process of its own: our rate over that of ONNX Runtime, result new / out=")
    sides = {"quantd": Apart(), "ONNX Runtime": Apart()}
    for variant, types in PEERS.items():
        names = ["dynamic_quantize", "quantize", "dequantize"]
        if types != PEERS["FLOAT, UINT8, one scale"]:  # all that DynamicQuantizeLinear has
            del names[0]
        print(f"\n| {variant} | {' | '.join(names)} |\n|---|" + "---|" * len(names))
        for size, threads in itertools.product((16 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB), (1, 2)):
            row = []
            for case in itertools.product(names, [variant], [size], [threads], [False, True]):
                sums = {side.make(make, case[0], *types, *case[2:]) for side, make in zip(sides.values(), (ours, theirs))}
                if len(sums) > 1 and "FLOAT16" not in variant:  # whose quotients ONNX Runtime does not round to FLOAT16
                    raise SystemExit(f"{case}: ONNX Runtime's bytes differ")
                rounds, calls, pause = 5 if options.quick else 9, max(5, min(1000, 128 * MIB // size)), 0.06 * (threads > 1)
                found = report.measure(", ".join(map(str, case)), sides, rounds, calls, of=statistics.median, pause=pause, shown=False)
                row.append(f"{1 / found['ratios']['ONNX Runtime']['median']:.2f}")
            print(f"| {size_text(size)}, {threads} | {' | '.join(map(' / '.join, zip(row[::2], row[1::2])))} |", flush=True)


def embeddings(report, options):
    report.begin("embeddings", "Codes of 256 embeddings of 1,024 float32, 1 MiB, by one thread")
    sys.path.insert(0, str(ROOT / "tests" / "conformance"))
    import packages

    ours, x = quantd.local(threads=1), np.random.default_rng(0).uniform(-1, 1, (256, 1024)).astype(np.float32)
    ranges = np.stack([np.full(1024, -0.99, np.float32), np.full(1024, 0.98, np.float32)])
    uint8, int8, bits = np.empty(x.shape, "u1"), np.empty(x.shape, "i1"), np.empty((256, 128), "u1")
    flat = np.empty(x.size, "u1")
    sides = {
        "ranges": {"quantd": lambda: ours.quantize_embeddings(x, recipe="ranges", ranges=ranges, out=uint8),
                   "a narrowing copy": lambda: np.copyto(flat, x.view(np.int32).reshape(-1), casting="unsafe")},
        "bits": {"quantd": lambda: ours.quantize_embeddings(x, recipe="bits", out=bits),
                 "numpy packbits(x > 0)": lambda: np.packbits(x > 0, axis=-1), "numpy max, a reading": lambda: x.max()},
        "unit": {"quantd": lambda: ours.quantize_embeddings(x, recipe="unit", out=int8)},
        "direction": {"quantd": lambda: ours.quantize_embeddings(x, recipe="direction", out=int8)},
    }  # fmt: skip
    theirs, numkong = packages.sentence_transformers(), packages.find("numkong")
    if theirs is not None:
        sides["ranges"]["sentence-transformers"] = lambda: theirs.quantize_embeddings(x, "uint8", ranges=ranges)
    if numkong is not None:
        # Its cast rounds, and it has one factor for all: other codes than any recipe's, and less work.
        own = numkong.Tensor(x.reshape(-1))
        for recipe in ("unit", "direction"):
            sides[recipe]["numkong scale, astype"] = lambda: numkong.scale(own, alpha=127.0, beta=0.0).astype("int8")
    for recipe, ways in sides.items():
        report.measure(recipe, ways, 7 if options.quick else 15, 20, of=statistics.median, clock=time.thread_time)


SECTIONS = {"client": client, "async": asynchronous, "break_even": break_even, "engine": engine, "embeddings": embeddings}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=" ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--json", help="put the results into this file, beside those of other sections")
    parser.add_argument("--quantd", default=str(ROOT / "build/release/server/quantd"), help="default: %(default)s")
    options = parser.parse_args()
    report = Report()
    for name in options.sections or SECTIONS:
        if name not in SECTIONS:
            parser.error(f"no section {name}")
        SECTIONS[name](report, options)
    if options.json:
        report.write(options.json)


if __name__ == "__main__":
    main()
