"""The smallest input that shows a difference, found by trying smaller ones: fewer elements, no zero point, a scale of 1, fewer
attributes, and for x the number with the fewest bits."""

import dataclasses
import itertools

import numpy as np

from quantd.conformance import files, oracle, verify
from quantd.conformance import oracle_types as ot
from quantd.conformance.case import Case
from quantd.conformance.versions import SINCE_BLOCKS


def fails(case: Case, ask) -> bool:
    """Whether the engine answers, and its answer still differs from the oracle's."""
    wanted = Case.expected(case)
    if wanted.refused is not None:
        return False
    outcome = verify.judge(files.stored(case), ask)
    if outcome.status != verify.FAILED or outcome.found is None:
        return False
    return all(
        name in outcome.found.tensors and (outcome.found.tensors[name].dtype, outcome.found.tensors[name].shape) == (t.dtype, t.shape)
        for name, t in wanted.tensors.items()
    )


def changed(case: Case, inputs, **attributes) -> Case:
    kept = {k: v for k, v in {**case.attributes, **attributes}.items() if v is not None}
    return dataclasses.replace(case, inputs={k: v for k, v in inputs.items() if v is not None}, attributes=kept)


def _elements(case: Case, found):
    """The indices in y of the elements that differ."""
    where = verify.different(found.tensors["y"], Case.expected(case).tensors["y"])
    return [tuple(int(i) for i in row)[: where.ndim] for row in np.argwhere(np.atleast_1d(where))]


def _one(case: Case, index):
    """One element alone, with its scale and its zero point; per tensor."""
    x, a = case.inputs["x"], case.attributes
    out = {"x": x[index].reshape((1,) if x.ndim else ())}
    if "scale" in case.inputs:
        block = oracle.block_of(x.shape, case.inputs["scale"].shape, a.get("axis"), a.get("block_size", 0), a.get("block_shape"))
        for name in ("scale", "zero_point"):
            if name in case.inputs:
                out[name] = np.asarray(oracle.spread(case.inputs[name], x.shape, block)[index])
    return changed(case, out, axis=None, block_size=None)


def _crops(case: Case):
    """The same granularity with fewer elements: each dimension shorter, by whole blocks at either end."""
    x, scale, a = case.inputs["x"], case.inputs.get("scale"), case.attributes
    if scale is None:
        return
    for d, length in enumerate(x.shape):
        cut = scale.ndim == x.ndim or (scale.ndim == 1 and d == a.get("axis", 1) % x.ndim and scale.size == length)
        along = d if scale.ndim == x.ndim else 0
        step = a.get("block_size", 1) if "block_size" in a and d == a.get("axis", 1) % x.ndim else 1
        for part in (slice(0, step), slice((length - 1) // step * step, length), slice(0, length // 2 // step * step or step)):
            begin, end, _ = part.indices(length)
            if end - begin >= length or end <= begin:
                continue
            out = {"x": np.take(x, range(begin, end), axis=d)}
            for name in ("scale", "zero_point"):
                if name in case.inputs:
                    t = case.inputs[name]
                    out[name] = np.take(t, range(begin // step, -(-end // step)), axis=along) if cut and t.ndim else t
            yield changed(case, out)


def _simpler_numbers(array: np.ndarray):
    """Numbers with fewer bits than the one element of an array, simplest first."""
    t = ot.of(array)
    if t is ot.INT32:
        v = int(array.reshape(-1)[0])
        found = [*(s * n for n in (1, 2, 3, 5, 7) for s in (1, -1)), *(int(v / 2**k) * 2**k for k in range(31, 0, -1))]
        return [np.full(array.shape, n, np.int32) for n in dict.fromkeys(found) if n and n != v and abs(n) < 2**31]
    value = float(ot.to_float(array).reshape(-1)[0])
    if not np.isfinite(value) or value == 0:
        return []
    sign = -1.0 if value < 0 else 1.0
    mantissa, exponent = np.frexp(abs(value))
    found = [s * n for n in (1.0, 2.0, 3.0, 5.0, 0.5, 1.5, 2.5, 0.25, 0.75, 6.0, 7.0, 10.0, 100.0) for s in (sign, -sign)]
    for bits in range(1, 24):
        for rounding in (np.floor, np.ceil):
            found.append(sign * float(np.ldexp(rounding(mantissa * 2.0**bits) / 2.0**bits, exponent)))
    made = [ot.round_to(np.full(array.shape, v, np.float32), t) for v in dict.fromkeys(found) if abs(v) < 3.4e38]
    return [m for m in made if np.isfinite(ot.to_float(m)).all() and (ot.to_float(m) != 0).all() and (ot.codes(m) != ot.codes(array)).any()]


def _simplest(case: Case, name: str, ask) -> Case:
    array = case.inputs[name]
    if array.size != 1 or ot.of(array).kind not in ("float", "int") or (ot.of(array).kind == "int" and ot.of(array) is not ot.INT32):
        return case
    for number in _simpler_numbers(array):
        smaller = changed(case, {**case.inputs, name: number})
        if fails(smaller, ask):
            return smaller
    return case


def _steps(case: Case):
    """Cases that are a little smaller."""
    given = case.inputs
    yield from _crops(case)
    if "zero_point" in given:
        t = ot.of(given["zero_point"])
        zero = np.zeros_like(ot.codes(given["zero_point"]))
        if case.operation == "dequantize" or t is ot.UINT8:
            yield changed(case, {**given, "zero_point": None})
        elif case.opset >= SINCE_BLOCKS:
            yield changed(case, {**given, "zero_point": None}, output_type=t.name)
        if ot.codes(given["zero_point"]).any():
            yield changed(case, {**given, "zero_point": ot.from_codes(zero, t)})
            if t.kind == "mini":
                yield from (
                    changed(case, {**given, "zero_point": ot.from_codes(zero + n, t)})
                    for n in (1, 2)
                    if (ot.codes(given["zero_point"]) > n).all()
                )
    if "scale" in given and given["scale"].dtype != np.int32:
        one = ot.from_codes(np.full(given["scale"].shape, 127), ot.E8M0) if ot.of(given["scale"]) is ot.E8M0 else None
        one = ot.round_to(np.ones(given["scale"].shape, np.float32), ot.of(given["scale"])) if one is None else one
        if (ot.codes(one) != ot.codes(given["scale"])).any():
            yield changed(case, {**given, "scale": one})
    for name in ("saturate", "precision", "block_size", "axis"):
        if name in case.attributes and not (name == "axis" and "block_size" in case.attributes):
            yield changed(case, given, **{name: None})
    if case.operation == "quantize" and case.attributes.get("output_type") == "UINT8" and "zero_point" not in given:
        yield changed(case, given, output_type=None)


def smallest(case: Case, ask, found=None) -> Case:
    """The smallest case, for one rule and one version of the operator, on which the engine's answer still differs."""
    case = Case(**{f.name: getattr(case, f.name) for f in dataclasses.fields(Case)})
    if not fails(case, ask):
        return case
    if case.operation in ("quantize", "dequantize"):
        found = found or verify.judge(files.stored(case), ask).found
        for index in itertools.islice(_elements(case, found), 8):
            try:
                single = _one(case, index)
            except (oracle.Invalid, IndexError):
                continue
            if fails(single, ask):
                case = single
                break
    for _ in range(40):
        smaller = next((c for c in _steps(case) if _valid(c) and fails(c, ask)), None)
        if smaller is None:
            break
        case = smaller
    for name in ("scale", "x", "scale", "x"):
        if name in case.inputs:
            case = _simplest(case, name, ask)
    if case.operation == "dynamic_quantize":
        case = _fewer(case, ask)
    return case


def _valid(case: Case) -> bool:
    return Case.expected(case).refused is None


def _fewer(case: Case, ask) -> Case:
    """x with as few elements as possible."""
    x = case.inputs["x"].reshape(-1)
    i = 0
    while i < x.size and x.size > 1:
        smaller = changed(case, {"x": np.delete(x, i)})
        if fails(smaller, ask):
            case, x = smaller, smaller.inputs["x"]
        else:
            i += 1
    return case
