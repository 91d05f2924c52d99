"""The server against ONNX's reference evaluator and ONNX Runtime on random tensors, at every version of the operators.

Elements that a row of differences.py covers are left out, all others must be equal bit for bit. ONNX Runtime is tried
with every pair of types; the pairs for which it has no kernel are listed at the end of the run.
"""

import itertools

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx  # noqa: E402
import onnxruntime  # noqa: E402

import ask  # noqa: E402
import compare  # noqa: E402
from compare import name  # noqa: E402
import differences  # noqa: E402
from quantd_conformance import oracle  # noqa: E402
from quantd_conformance import oracle_types as ot  # noqa: E402
import outside  # noqa: E402
from quantd_conformance.granularity import Granularity  # noqa: E402
from generate import rng  # noqa: E402
from quantd_conformance.values import any_codes, inputs, of_type, scales, zero_points  # noqa: E402

EVALUATOR, RUNTIME = "ONNX reference evaluator", "ONNX Runtime"
IMPLEMENTATIONS = {EVALUATOR: outside.reference, RUNTIME: outside.runtime}
VERSION = {EVALUATOR: f"onnx {onnx.__version__}", RUNTIME: f"onnxruntime {onnxruntime.__version__}"}

# The opset that introduced a type (of y for QuantizeLinear, of x for DequantizeLinear), a type of x or scale, or blocks.
SINCE = {ot.UINT8: 10, ot.INT8: 10, ot.INT32: 10, **dict.fromkeys(ot.FP8, 19), ot.INT16: 21, ot.UINT16: 21, ot.INT4: 21,
         ot.UINT4: 21, ot.E2M1: 23, ot.E2M3: 28, ot.E3M2: 28, ot.INT2: 25, ot.UINT2: 25}
SINCE_FLOAT = {ot.FLOAT: 10, ot.FLOAT16: 19, ot.BFLOAT16: 19, ot.INT32: 10, ot.E8M0: 24}
OPSETS = {EVALUATOR: (10, 13, 19, 21, 23, 24, 25, 28), RUNTIME: (10, 13, 19, 21, 23, 24, 25)}

GRAINS = {
    "tensor": (10, Granularity("tensor", (1003,), ())),
    "axis": (13, Granularity("axis", (21, 53), (53,), (("axis", 1),))),
    "axis first": (13, Granularity("axis first", (21, 53), (21,), (("axis", 0),))),
    "blocks last": (21, Granularity("blocks last", (21, 53), (21, 7), (("axis", 1), ("block_size", 8)))),
    "blocks": (21, Granularity("blocks", (21, 53), (6, 53), (("axis", 0), ("block_size", 4)))),
}
NO_KERNEL = set()


def versions(types, evaluator_since=10):
    """Every implementation, version of the operator and type that go together."""
    return [(i, o, t) for i, opsets in OPSETS.items() for o in opsets for t in types
            if SINCE[t] <= o and not (i == EVALUATOR and o < evaluator_since)]


def outside_answer(implementation, operator, x, scale, zero, result, opset, attributes):
    """The implementation's answer; None if it has no kernel."""
    try:
        return IMPLEMENTATIONS[implementation](
            operator, [("x", x), ("scale", scale), ("zero_point", zero)], [result], opset, **attributes)[0]
    except Exception as error:
        if implementation == RUNTIME and ("NOT_IMPLEMENTED" in str(error) or "INVALID_GRAPH" in str(error)):
            NO_KERNEL.add(f"{operator} {ot.of(x).name}, scale {ot.of(scale).name}, {result.name}")
            return None
        raise


def check(ours, theirs, covered, what, source):
    theirs = np.asarray(theirs)
    assert theirs.dtype == ours.dtype and theirs.shape == ours.shape, what
    different = compare.mismatch(ours, theirs)
    left = different & ~covered
    if left.any():
        i = tuple(np.argwhere(left)[0])
        raise AssertionError(f"{what}: {int(left.sum())} elements differ and no row of differences.py covers them; first at "
                             f"{i}: server {ours[i]!r}, {source} {theirs[i]!r}")
    compare.count(f"{source}", ours.size - int((different & covered).sum()))


@pytest.mark.parametrize("implementation,opset,t", versions(ot.OUTPUTS), ids=name)
def test_quantize(client, implementation, opset, t):
    for xt, (grain, (since, g)) in itertools.product(ot.FLOATS + (ot.INT32,), GRAINS.items()):
        if since > opset or SINCE_FLOAT[xt] > opset:
            continue
        for st in [xt if xt is not ot.INT32 else ot.FLOAT] + ([ot.E8M0] if opset >= 24 else []):
            if implementation == RUNTIME and (st is ot.E8M0 or (xt is ot.INT32 and 19 <= opset < 23)):
                continue  # those versions of the operator require the same type for x and scale
            r = rng("outside", implementation, opset, xt.name, st.name, t.name, grain)
            scale, zero = scales(r, g.scale_shape, st), zero_points(r, g.scale_shape, t)
            s_each = oracle.spread(scale, g.shape, g.block())
            x = inputs(r, g.shape, xt, s_each, t)
            attributes = dict(g.arguments)
            # Given explicitly where the defaults of the two sides differ; see differences.py.
            precision = ot.FLOAT if implementation == RUNTIME or (opset >= 23 and st is not xt) else None
            if precision and implementation == EVALUATOR:
                attributes["precision"] = ot.FLOAT.number
            if xt is ot.INT32 and implementation == EVALUATOR and opset < 23:
                # It divides in float64: for powers of two that gives the same.
                scale = np.exp2(np.round(np.log2(np.abs(scale)))).astype(np.float32)
                s_each = oracle.spread(scale, g.shape, g.block())
                x = (x % 4000).astype(np.int32)
            for saturate in (True, False) if t.kind == "fp8" else (True,):
                if t.kind == "fp8":
                    attributes["saturate"] = int(saturate)
                theirs = outside_answer(implementation, "QuantizeLinear", x, scale, zero, t, opset, attributes)
                if theirs is None:
                    continue
                ours = ask.quantize(client, x, scale, zero, saturate=saturate, precision=precision, **g.arguments).y
                v = oracle._quotient(ot.to_float(x), ot.to_float(s_each), precision or (st if st.kind == "float" else ot.FLOAT))
                case = differences.Case(implementation, "QuantizeLinear", xt, t, v, grain, saturate)
                check(ours, theirs, differences.explained(case), f"{implementation} {opset} {xt.name} by {st.name} to {t.name}, {grain}, "
                      f"saturate {saturate}", f"{VERSION[implementation]}, QuantizeLinear {opset}")


# The evaluator has DequantizeLinear since opset 19.
@pytest.mark.parametrize("implementation,opset,t", versions(ot.OUTPUTS + (ot.INT32,), 19), ids=name)
def test_dequantize(client, implementation, opset, t):
    for st, (grain, (since, g)) in itertools.product(ot.FLOATS, GRAINS.items()):
        if since > opset or SINCE_FLOAT[st] > opset:
            continue
        for output in ot.FLOATS if opset >= 23 and implementation == EVALUATOR else (None,):
            r = rng("outside dequantize", implementation, opset, st.name, t.name, grain, name(output))
            x, scale, zero = any_codes(r, g.shape, t), scales(r, g.scale_shape, st), zero_points(r, g.scale_shape, t)
            if t is ot.INT32:  # a difference that 32 bits cannot hold is a row of differences.py, as is any with the evaluator
                x, zero = x // 2, zero // 2 if implementation == RUNTIME else np.zeros_like(zero)
            attributes = dict(g.arguments)
            if output:
                attributes["output_dtype"] = output.number
            theirs = outside_answer(implementation, "DequantizeLinear", x, scale, zero, output or st, opset, attributes)
            if theirs is None:
                continue
            ours = ask.dequantize(client, x, scale, zero, output_type=output, **g.arguments).y
            z_each = ot.to_float(oracle.spread(zero, g.shape, g.block()))
            case = differences.Case(implementation, "DequantizeLinear", t, output or st, ot.to_float(x), grain, zero_point=z_each)
            check(ours, theirs, differences.explained(case), f"{implementation} {opset} {t.name} by {st.name} to {name(output)}, {grain}",
                  f"{VERSION[implementation]}, DequantizeLinear {opset}")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_dynamic_quantize(client, implementation):
    for i, shape in itertools.product(range(20), ((1000,), (13, 77), (3, 5, 7))):
        r = rng("outside dynamic", implementation, i, shape)
        x = of_type((r.standard_normal(shape) * np.exp2(r.integers(-20, 20)) + r.integers(-3, 4)).astype(np.float32), ot.FLOAT)
        theirs = IMPLEMENTATIONS[implementation]("DynamicQuantizeLinear", [("x", x)], [ot.UINT8, ot.FLOAT, ot.UINT8], 11)
        ours = client.dynamic_quantize(x)
        for got, expected, part in zip((ours.y, ours.scale, ours.zero_point), theirs, ("y", "scale", "zero_point")):
            compare.same(got, np.asarray(expected), f"{implementation} DynamicQuantizeLinear {part}", x)
        compare.count(f"{VERSION[implementation]}, DynamicQuantizeLinear 11", x.size)


def test_runtime_has_the_kernels_that_it_had():
    """Runs last in this file: a shorter list would mean that pairs are no longer compared."""
    assert not [n for n in NO_KERNEL if n.startswith("QuantizeLinear FLOAT,") and "FLOAT4" not in n]
    assert not [n for n in NO_KERNEL if n.startswith("QuantizeLinear FLOAT16,") and "FLOAT4" not in n]
