"""quantctl convert compared with cp and with the packages, and the cost of each layout: sizes and SQNR.

    python checkpoints.py speed [--gigabytes=1] [--rounds=7]   rates relative to `cp -r` of the same folder in the page cache, in turns
    python checkpoints.py packages                             compared with compressed-tensors, gguf and bitsandbytes on the CPU, in the
                                                               environment of the suite checkpoints
    python checkpoints.py layouts                              the table of client/CHECKPOINTS.md: bytes and SQNR of one model by layout

The model is made here: the shapes of Llama 3.2 1B's layers, weights of a normal distribution whose rows differ in size, and one in
10,000 twenty times as large, as in trained models. Needs numpy and ml_dtypes; QUANTD_BUILD_DIR as for the tests.
"""

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ml_dtypes
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
QUANTCTL = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client" / "quantctl"
LAYOUTS = [
    "fp8-tiles",
    *("compressed-tensors:" + name for name in (
        "int8", "int8-tensor", "int4-g128", "int4-g32", "int4-g128-asym", "int4-g32-asym", "fp8", "fp8-tensor", "fp8-block", "nvfp4", "mxfp4"
    )),
    *("gguf:" + name for name in ("f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "mxfp4")),
    *("bnb:" + name for name in ("nf4", "nf4-double", "fp4", "fp4-double", "int8")),
]
SHAPES = {
    "self_attn.q_proj": (2048, 2048), "self_attn.k_proj": (512, 2048), "self_attn.v_proj": (512, 2048), "self_attn.o_proj": (2048, 2048),
    "mlp.gate_proj": (8192, 2048), "mlp.up_proj": (8192, 2048), "mlp.down_proj": (2048, 8192),
}


def weight(draw, shape):
    """BF16, like trained weights: rows of different size, and a few large values."""
    w = draw.standard_normal(shape, np.float32) * draw.lognormal(-3.5, 0.3, (shape[0], 1)).astype(np.float32)
    w.reshape(-1)[draw.integers(0, w.size, w.size // 10_000)] *= 20
    return w.astype(ml_dtypes.bfloat16)


def save(path, tensors):
    header, size = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(array.shape), "data_offsets": [size, size + array.nbytes]}
        size += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.tobytes())


def make_model(folder, layers, per_shard=4):
    """A folder of shards; the layers differ, because equal pages might be stored once."""
    folder.mkdir()
    draw, places, total = np.random.default_rng(1), {}, 0
    shards = (layers + per_shard - 1) // per_shard
    for shard in range(shards):
        name, tensors = f"model-{shard + 1:05}-of-{shards:05}.safetensors", {}
        for layer in range(shard * per_shard, min(layers, (shard + 1) * per_shard)):
            for module, shape in SHAPES.items():
                tensors[f"model.layers.{layer}.{module}.weight"] = weight(draw, shape)
        save(folder / name, tensors)
        places.update(dict.fromkeys(tensors, name))
        total += sum(array.nbytes for array in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return total


def convert(source, out, to, *flags):
    done = subprocess.run([QUANTCTL, "convert", source, "-o", out, f"--to={to}", "--json", *flags], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def timed(work, out):
    """The seconds of `work`, which makes `out`. Removes it afterwards, and leaves nothing that must still be written to disk."""
    begin = time.monotonic()
    work()
    seconds = time.monotonic() - begin
    shutil.rmtree(out) if out.is_dir() else out.unlink()
    os.sync()
    return seconds


def speed(given, folder):
    total = make_model(folder / "m", round(given.gigabytes * 1e9 / 2 / sum(a * b for a, b in SHAPES.values())))
    out = folder / "out"
    sides = {"cp -r": lambda: subprocess.run(["cp", "-r", folder / "m", out], check=True)}
    for layout in given.layouts or ["fp8-tiles", "compressed-tensors:int8"]:
        sides[layout] = lambda layout=layout: convert(folder / "m", out, layout, "--quiet")
    seconds = {name: [] for name in sides}
    for work in sides.values():
        timed(work, out)
    for turn in range(given.rounds):
        for name in list(sides)[:: 1 if turn % 2 == 0 else -1]:
            seconds[name].append(timed(sides[name], out))
    print(f"{total / 1e9:.2f} GB of BF16 in page cache, {given.rounds} turns, seconds: median (lowest to highest); rate of `cp -r` = 1")
    for name, values in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(seconds["cp -r"], values))
        middle = statistics.median(values)
        print(f"| {name} | {middle:.2f} ({min(values):.2f} to {max(values):.2f}) | {total / 1e9 / middle:.2f} GB/s | {ratio:.2f} |")


def sqnr(source, back):
    """Over all weights of two folders or files with the same tensors, one tensor at a time."""
    signal = noise = 0.0
    for name, x in tensors(source):
        y = back(name)
        if y is not None:
            x, y = x.astype(np.float32), y.astype(np.float32)
            signal += float(np.square(x, dtype=np.float64).sum())
            noise += float(np.square(x - y, dtype=np.float64).sum())
    return float("inf") if noise == 0 else 10 * np.log10(signal / noise)


DTYPES = {"BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": np.float32}


def tensors(path):
    """(name, array) of each floating-point tensor in a .safetensors or a folder of them."""
    for file in sorted(path.glob("*.safetensors")) if path.is_dir() else [path]:
        data = np.memmap(file, np.uint8, "r")
        length = int.from_bytes(data[:8].tobytes(), "little")
        for name, entry in json.loads(data[8 : 8 + length].tobytes()).items():
            if name != "__metadata__" and entry["dtype"] in DTYPES:
                begin, end = (8 + length + offset for offset in entry["data_offsets"])
                yield name, data[begin:end].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])


def layouts(given, folder):
    make_model(folder / "m", 2)
    before = sum(path.stat().st_size for path in (folder / "m").glob("*.safetensors"))
    print("| `--to` | bytes, of BF16 = 1 | bits a weight | SQNR |\n|---|---|---|---|")
    for layout in LAYOUTS:
        gguf = layout.startswith("gguf")
        out, back = folder / ("o.gguf" if gguf else "o"), folder / ("b.safetensors" if gguf else "b")
        report = convert(folder / "m", out, layout)
        convert(out, back, "f32")
        found = dict(tensors(back))
        ratio = report["bytes_after"] / report["bytes_before"]
        decibels = sqnr(folder / "m", found.get)
        print(f"| `{layout}` | {ratio:.3f} | {16 * ratio:.2f} | {'exact' if decibels == float('inf') else f'{decibels:.1f} dB'} |")
        for path in (out, back):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    print(f"{before / 1e6:.0f} MB of BF16", file=sys.stderr)


def packages(given, folder):
    import checkpoint_packages

    make_model(folder / "m", 2)
    print("| layout | package, seconds | quantctl, seconds | times faster |\n|---|---|---|---|")
    for layout, work in checkpoint_packages.SIDES.items():
        out = folder / ("o.gguf" if layout.startswith("gguf") else "o")
        theirs, ours = [], []
        for _ in range(given.rounds):
            theirs.append(timed(lambda: work(folder / "m", out), out))
            ours.append(timed(lambda: convert(folder / "m", out, layout, "--quiet"), out))
        ratio = statistics.median(a / b for a, b in zip(theirs, ours))
        print(f"| `{layout}` | {statistics.median(theirs):.2f} | {statistics.median(ours):.2f} | {ratio:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "packages", "layouts"))
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--layouts", nargs="*")
    parser.add_argument("--folder", help="where to work (default: the system's folder for temporary files)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        {"speed": speed, "packages": packages, "layouts": layouts}[given.what](given, Path(folder))


if __name__ == "__main__":
    main()
