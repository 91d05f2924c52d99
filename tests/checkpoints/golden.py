"""tests/golden/layouts.txt: checksums of what the packages make of the hard weights, for tests without the packages.

    build/venv-checkpoints/bin/python tests/checkpoints/golden.py            compares
    build/venv-checkpoints/bin/python tests/checkpoints/golden.py --update   writes the file anew

A line: layout, dtype, index of the weight, then `refused`, or the CRC-32 of each part in the order of WeightParts and of its decoding to FLOAT,
FLOAT16 and BFLOAT16 (`-` if the package cannot read what it wrote); with -double, the bits of nested_offset before them. Lines of GGML's K types
are decodings of hard.blocks.
"""

import sys
import zlib
from pathlib import Path

import hard
import numpy as np
import packages
import torch

GOLDEN = Path(__file__).parents[1] / "golden/layouts.txt"
WEIGHTS = 24
COMPRESSED = "int8 int8-tensor int4-g128 int4-g32 int4-g128-asym int4-g32-asym fp8 fp8-tensor fp8-block nvfp4 mxfp4".split()
LAYOUTS = {  # and the number that must divide the columns
    "fp8-tiles": 1,
    **{f"compressed-tensors:{name}": next((size for part, size in (("g128", 128), ("g32", 32), ("nvfp4", 16), ("mxfp4", 32)) if part in name), 1)
       for name in COMPRESSED},
    **{f"gguf:{name}": 1 if name in ("f16", "bf16") else 32 for name in "f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 mxfp4".split()},
    **{f"bnb:{name}": 1 for name in "nf4 nf4-double fp4 fp4-double int8".split()},
}  # fmt: skip
# In the order of layout.h, without the text, which has its own test.
PARTS = ["", "_packed", "_scale_inv", "_scale", "_zero_point", "_global_scale", "_shape", ".SCB", "_format", ".absmax", ".quant_map",
         ".nested_absmax", ".nested_quant_map"]  # fmt: skip
# The bytes of a block of 256, and the offsets of FLOAT16 numbers in it.
K_TYPES = {"q2_k": (84, (80, 82)), "q3_k": (110, (108,)), "q4_k": (144, (0, 2)), "q5_k": (176, (0, 2)), "q6_k": (210, (208,))}


def crc(data):
    return f"{zlib.crc32(data):08x}"


def crc_of_floats(values):
    """Makes every NaN the same: their bits are not specified."""
    return crc(packages.raw(torch.where(values.isnan(), torch.tensor(float("nan"), dtype=values.dtype), values)))


def line_of(layout, dtype, index):
    shape = hard.shape_of(index, LAYOUTS[layout])
    weight = packages.tensor(hard.weight(dtype, index, shape))
    parts = packages.encode(layout, weight)
    if packages.is_refused(layout, weight, parts):
        return f"{layout} {dtype} {index} refused"
    if packages.is_not_followed(layout, weight, parts):
        return None
    words = []
    if layout.endswith("-double"):
        words.append(crc_bits(packages.offset_of(parts)))
    words += [crc(packages.raw(parts[suffix])) for suffix in PARTS if suffix in parts]
    for output in packages.TORCH.values():
        back = packages.decode(layout, parts, shape, output)
        words.append("-" if back is None else crc_of_floats(back))
    return " ".join([layout, dtype, str(index), *words])


def crc_bits(value):
    return f"{int(np.float32(value).view(np.uint32)):08x}"


def k_lines():
    for name, (size, halves) in K_TYPES.items():
        for index in range(4):
            stored = hard.blocks(index, 5, size, halves)
            back = packages.gguf_decode(name, packages.tensor(stored), (5, 256))
            yield " ".join([f"gguf:{name}", "-", str(index), *(crc_of_floats(back.to(output)) for output in packages.TORCH.values())])


def lines():
    for layout in LAYOUTS:
        for dtype in hard.TYPES:
            for index in range(WEIGHTS):
                line = line_of(layout, dtype, index)
                if line is not None:
                    yield line
    yield from k_lines()


if __name__ == "__main__":
    text = "".join(line + "\n" for line in lines())
    if sys.argv[1:] == ["--update"]:
        GOLDEN.write_text(text)
    elif text != GOLDEN.read_text():
        sys.exit(f"{GOLDEN} differs from what the packages make: --update writes it anew")
