"""QuantizeEmbeddings: every recipe and switch, and the vectors of core/EMBEDDINGS.md."""

from typing import Any, Dict, Iterator

import numpy as np

from .. import oracle_types as ot
from ..case import Case
from ..values import SEED, of_type, rng

F32 = np.float32
ARCHIVED = 480


def some_values(r: Any, shape: Any) -> np.ndarray:
    """Values in and around [-1, 1], with the edges of buckets and their neighbours, denormals, huge values, zeros of both signs."""
    x = r.uniform(-1.2, 1.2, shape).astype(F32)
    flat = x.reshape(-1)
    special = F32([0, -0.0, 1, -1, 2, -2, 1e-40, -1e-40, 3e38, -3e38, 0.5, 1 / 255])
    if flat.size:
        places = r.integers(0, flat.size, flat.size // 20 + 1)
        flat[places] = r.choice(special, places.size)
        edges = r.integers(0, flat.size, flat.size // 10)
        flat[edges] = (r.integers(0, 256, edges.size) * F32(2 / 255) - 1).astype(F32)
        flat[edges] = (flat[edges].view(np.int32) + r.integers(-3, 4, edges.size).astype(np.int32)).view(F32)
    return x


def made(recipe: str, what: Any, x: Any, ranges: Any = None, **attributes: Any) -> Case:
    given = {"x": x} if ranges is None else {"x": x, "ranges": ranges}
    return Case(
        str(what),
        f"embeddings-{recipe.lower()}",
        "quantize_embeddings",
        given,
        {"recipe": recipe, **attributes},
        family="embeddings",
        group=recipe.lower(),
    )


def a_call(i: int, widths: Any = (0, 1, 7, 8, 9, 33, 64, 130, 1500), seed: int = SEED) -> Case:
    r = rng("embeddings", i, seed=seed)
    recipe = ("RANGES", "UNIT", "DIRECTION", "BITS")[int(r.integers(4))]
    shape = tuple(int(n) for n in r.integers(0, 9, int(r.integers(0, 3)))) + (int(r.choice(widths)),)
    dimensions = int(r.integers(0, shape[-1] + 1)) if r.random() < 0.4 else 0
    used = dimensions or shape[-1]
    words: Dict[str, Any] = {"dimensions": dimensions, "normalize": bool(r.random() < 0.3)}
    ranges = None
    if recipe == "RANGES":
        low = np.where(r.random(used) < 0.5, F32(-1), r.uniform(-2, 0, used).astype(F32))
        width = np.where(r.random(used) < 0.1, 0, r.uniform(0, 2.5, used))
        ranges = np.stack([low, low + width.astype(F32)]).astype(F32)
    signed = recipe in ("RANGES", "BITS") and r.random() < 0.5
    if signed:
        words["output_type"] = "INT8"
    if recipe == "BITS":
        for word, other in (("bit_order", "LSB_FIRST"), ("bit_threshold", "GREATER_OR_EQUAL")):
            if r.random() < 0.5:
                words[word] = other
        if signed and r.random() < 0.5:
            words["signed_bits"] = "TWOS_COMPLEMENT"
    report = recipe != "BITS" and r.random() < 0.3
    if r.random() < 0.5:
        words["non_finite"] = "IGNORE"
    x = some_values(r, shape)
    t = ot.FLOATS[int(r.integers(3))]
    x = of_type(np.clip(x, -6e4, 6e4) if t is ot.FLOAT16 else x, t)
    if x.size and r.random() < 0.3:
        x.reshape(-1)[int(r.integers(x.size))] = r.choice([np.nan, np.inf, -np.inf])
    wide = ot.to_float(x)
    if report and np.isfinite(wide).all() and np.abs(wide).max(initial=0) < 1e30:
        words["report_error"] = True  # sums of squares of larger values lose the digits that are compared
    return made(recipe, f"call_{i}", x, ranges, **{k: v for k, v in words.items() if v})


def documented() -> Iterator[Case]:
    """The examples of core/EMBEDDINGS.md."""
    x = F32([[-1, 1, 0, -2, 2]])
    ranges = F32([[-1] * 5, [1] * 5])
    yield made("UNIT", "documented", x)
    yield made("RANGES", "documented", x, ranges)
    yield made("RANGES", "documented_int8", x, ranges, output_type="INT8")
    yield made("DIRECTION", "documented_345", F32([3, -4, 0, 0]))
    yield made("DIRECTION", "documented_tiny", F32([-1e-30] * 5))
    nine, five = F32([1] * 8 + [-1]), F32([1, 0, -1, 2, -0.0])
    yield made("BITS", "documented_nine", nine)
    yield made("BITS", "documented_nine_int8", nine, output_type="INT8")
    yield made("BITS", "documented_nine_twos", nine, output_type="INT8", signed_bits="TWOS_COMPLEMENT")
    yield made("BITS", "documented_five", five)
    yield made("BITS", "documented_five_lsb", five, bit_order="LSB_FIRST")
    yield made("BITS", "documented_five_equal", five, bit_threshold="GREATER_OR_EQUAL")


def edges() -> Iterator[Case]:
    """Every edge of a bucket and the neighbouring FLOATs; lengths of more than 16 values of every size."""
    each = (np.arange(256) * F32(2 / 255) - 1).astype(F32)
    x = np.stack([each, np.nextafter(each, F32(9)), np.nextafter(each, F32(-9))])
    yield made("UNIT", "edges", x)
    for low, high in ((-1, 1), (0, 1), (-0.3, 0.7), (0.25, 0.25), (0, 1e-45)):
        ranges = np.repeat(F32([[low], [high]]), 256, axis=1)
        step = (F32(high) - F32(low)) / F32(255)
        on = (np.arange(256).astype(F32) * step + F32(low)).astype(F32)
        yield made("RANGES", f"edges_{low}_{high}", np.stack([on, np.nextafter(on, F32(9)), np.nextafter(on, F32(-9))]), ranges)
    # Just outside of the range, with a report that counts them.
    outside = F32([[-1.002, -1.005, -1.02, 1.0, 1.002, 1.005, 1.01, 1.02, 0.3]])
    yield made("UNIT", "outside", outside, report_error=True)
    yield made("RANGES", "outside", outside, np.repeat(F32([[-1], [1]]), 9, axis=1), report_error=True)
    yield made("DIRECTION", "outside", outside, report_error=True)
    yield made("DIRECTION", "outside_normalized", outside, report_error=True, normalize=True)
    r = rng("lengths")
    for width in (15, 16, 17, 31, 33, 64, 100):
        x = (np.ldexp(r.uniform(-1, 1, (6, width)), r.integers(-12, 12, (6, width)))).astype(F32)
        for normalize in (False, True):
            words = {"normalize": True} if normalize else {}
            yield made("DIRECTION", f"lengths_{width}_{normalize}".lower(), x, **words)
            yield made("UNIT", f"lengths_{width}_{normalize}".lower(), x / F32(4096), **words)
    one = np.zeros((20, 64), F32)
    one[np.arange(20), np.arange(20)] = np.arange(20) + 1
    yield made("DIRECTION", "one_value", one)
    yield made("DIRECTION", "not_finite", F32([[1, np.nan, 2], [np.inf, 1, 2], [0, 0, -0.0]]), non_finite="IGNORE")


def cases() -> Iterator[Case]:
    yield from documented()
    yield from edges()
    for i in range(ARCHIVED):
        yield a_call(i, (0, 1, 7, 8, 9, 33, 64))
