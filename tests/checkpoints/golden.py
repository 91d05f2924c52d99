"""tests/golden/layouts.txt: checksums of what the packages make of the hard weights, for tests without the packages.

    build/venv-checkpoints/bin/python tests/checkpoints/golden.py            compares
    build/venv-checkpoints/bin/python tests/checkpoints/golden.py --update   writes the file anew

A row: layout, dtype, and a word for each weight of hard.py. The word is the CRC-32 of a text: the CRC-32 of each part in the order of
WeightParts and of its decodings to FLOAT, FLOAT16 and BFLOAT16. `*` behind it: the package cannot read what it wrote, and the text has `-`
for each decoding. BITS+ before it: nested_offset of -double. `refused`, or `-` if we do not follow the package. Rows of GGML's K types are
decodings of hard.blocks.
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


def word_of(layout, dtype, index):
    shape = hard.shape_of(index, LAYOUTS[layout])
    weight = packages.tensor(hard.weight(dtype, index, shape))
    parts = packages.encode(layout, weight)
    if packages.is_refused(layout, weight, parts):
        return "refused"
    if packages.is_not_followed(layout, weight, parts):
        return "-"
    offset = f"{int(np.float32(packages.offset_of(parts)).view(np.uint32)):08x}+" if layout.endswith("-double") else ""
    words = [crc(packages.raw(parts[suffix])) for suffix in PARTS if suffix in parts]
    for output in packages.TORCH.values():
        back = packages.decode(layout, parts, shape, output)
        words.append("-" if back is None else crc_of_floats(back))
    return offset + of_all(words) + ("*" if "-" in words else "")


def of_all(words):
    return crc(" ".join(words).encode())


def k_word(name, index):
    size, halves = K_TYPES[name]
    back = packages.gguf_decode(name, packages.tensor(hard.blocks(index, 5, size, halves)), (5, 256))
    return of_all(crc_of_floats(back.to(output)) for output in packages.TORCH.values())


def rows():
    for layout in LAYOUTS:
        for dtype in hard.TYPES:
            yield layout, dtype, *(word_of(layout, dtype, index) for index in range(WEIGHTS))
    for name in K_TYPES:
        yield f"gguf:{name}", "-", *(k_word(name, index) for index in range(4))


if __name__ == "__main__":
    text = "".join(" ".join(row) + "\n" for row in rows())
    if sys.argv[1:] == ["--update"]:
        GOLDEN.write_text(text)
    elif text != GOLDEN.read_text():
        sys.exit(f"{GOLDEN} differs from what the packages make: --update writes it anew")
