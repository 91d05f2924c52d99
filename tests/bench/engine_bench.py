"""quantd_core beside the C++ core and ONNX Runtime: DynamicQuantize of float32 to uint8, in one process.

    engine_bench.py --core=libengine_core.so [--json=FILE] [--quick] [--threads=N]

The sides take turns, in another order each round; a turn begins when all threads sleep (ONNX Runtime's look for work for 40 ms)
and counts its fastest call. A ratio is the median of the rounds', with the quartiles, and that of the fastest calls of all: on a
machine that others use as well it is the steadier one.
"""

import argparse
import ctypes
import json
import statistics
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import quantd_core

MIB = 1 << 20
LARGE, SMALL = 64 * MIB // 4, 1024  # floats


def onnx_session(threads):
    names = (("x", TensorProto.FLOAT, ["n"]),), (("y", 2, ["n"]), ("s", 1, []), ("z", 2, []))
    inputs, outputs = ([helper.make_tensor_value_info(*name) for name in some] for some in names)
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs), ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def fastest(call, calls):
    best = float("inf")
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def rounds_of(sides, rounds, calls):
    """Seconds of each side, a list each with an item a round."""
    names = list(sides)
    taken = {name: [] for name in names}
    for call in sides.values():
        call()
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            time.sleep(0.06)
            taken[name].append(fastest(sides[name], calls))
    return taken


def ratio(taken, over, under):
    ratios = [a / b for a, b in zip(taken[over], taken[under])]
    low, median, high = statistics.quantiles(ratios, n=4)
    fastest = min(taken[over]) / min(taken[under])
    return {"ratio": f"{over} / {under}", "median": median, "quartiles": [low, high], "fastest": fastest}


def large(core, threads, rounds):
    x = np.random.default_rng(1).standard_normal(LARGE).astype(np.float32)
    reused, out = np.zeros(LARGE, np.uint8), np.zeros(LARGE, np.uint8)
    engine, session = quantd_core.Engine(threads=threads), onnx_session(threads)
    expected = engine.dynamic_quantize(x)
    np.testing.assert_array_equal(expected.y, session.run(None, {"x": x})[0])
    assert core(x.ctypes.data, LARGE, reused.ctypes.data, threads, 1) > 0
    np.testing.assert_array_equal(expected.y, reused)
    del expected
    taken = rounds_of(
        {
            "core, new": lambda: core(x.ctypes.data, LARGE, None, threads, 1),
            "quantd_core, new": lambda: engine.dynamic_quantize(x),
            "core, reused": lambda: core(x.ctypes.data, LARGE, reused.ctypes.data, threads, 1),
            "quantd_core, out=": lambda: engine.dynamic_quantize(x, out=out),
            "ONNX Runtime": lambda: session.run(None, {"x": x}),
        },
        rounds,
        7,
    )
    pairs = (("quantd_core, new", "core, new"), ("quantd_core, out=", "core, reused"),
             ("ONNX Runtime", "quantd_core, new"), ("ONNX Runtime", "quantd_core, out="))
    return {"milliseconds": {name: [statistics.median(t) * 1e3, min(t) * 1e3] for name, t in taken.items()},
            "ratios": [ratio(taken, *pair) for pair in pairs]}


def small(core, threads, rounds):
    """Of 1,024 floats a call: microseconds, and what Python adds to the core's."""
    x = np.random.default_rng(2).standard_normal(SMALL).astype(np.float32)
    out, reused = np.zeros(SMALL, np.uint8), np.zeros(SMALL, np.uint8)
    engine, session, calls = quantd_core.Engine(threads=threads), onnx_session(threads), 100

    def many(call):
        return lambda: [call() for _ in range(calls)]

    taken = rounds_of(
        {
            "core, new": lambda: core(x.ctypes.data, SMALL, None, threads, calls),
            "quantd_core, new": many(lambda: engine.dynamic_quantize(x)),
            "core, reused": lambda: core(x.ctypes.data, SMALL, reused.ctypes.data, threads, calls),
            "quantd_core, out=": many(lambda: engine.dynamic_quantize(x, out=out)),
            "ONNX Runtime": many(lambda: session.run(None, {"x": x})),
        },
        rounds,
        100,
    )
    micro = {name: [t / calls * 1e6 for t in times] for name, times in taken.items()}

    def over(ours, core_s):
        return statistics.median(a - b for a, b in zip(micro[ours], micro[core_s]))

    return {"microseconds": {name: statistics.median(t) for name, t in micro.items()},
            "over_the_core": {"new": over("quantd_core, new", "core, new"), "out=": over("quantd_core, out=", "core, reused")}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--core", required=True)
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=quantd_core.info().threads)
    options = parser.parse_args()
    core = ctypes.CDLL(options.core).EngineCoreDynamicQuantize
    core.restype, core.argtypes = ctypes.c_double, [
        ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    rounds = 9 if options.quick else 25
    results = {"threads": options.threads, "target": quantd_core.info().target,
               "large": large(core, options.threads, rounds), "small": small(core, options.threads, rounds)}
    print(f"DynamicQuantize, float32 to uint8, {results['threads']} threads, {results['target']}\n")
    print("64 MiB                   ms  fastest")
    for name, (median, least) in results["large"]["milliseconds"].items():
        print(f"  {name:20} {median:6.2f}   {least:6.2f}")
    for row in results["large"]["ratios"]:
        low, high = row["quartiles"]
        print(f"  {row['ratio']:38} {row['median']:5.2f}  ({low:.2f} to {high:.2f}; of the fastest {row['fastest']:.2f})")
    print("\n1,024 floats             us")
    for name, value in results["small"]["microseconds"].items():
        print(f"  {name:20} {value:6.2f}")
    for name, value in results["small"]["over_the_core"].items():
        print(f"  quantd_core, {name:4} over the core: {value:.2f} us")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
