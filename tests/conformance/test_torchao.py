"""Microscaling formats and NVFP4 against torchao, if it is installed (requirements-torch.txt; its torch is large).

Each test "differs" has a row in README.md's table; torchao is not among the packages of every run.
"""

import numpy as np
import pytest

WHY = "torchao is not installed: pip install -r tests/conformance/requirements-torch.txt"
torch = pytest.importorskip("torch", reason=WHY)
torchao = pytest.importorskip("torchao", reason=WHY)
from torchao.prototype.mx_formats.mx_tensor import to_mx  # noqa: E402
from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale  # noqa: E402

import ask  # noqa: E402
from quantd_conformance import oracle_types as ot  # noqa: E402
from compare import count, name, same  # noqa: E402
from generate import rng  # noqa: E402

VERSION = f"torchao {torchao.__version__}"
ELEMENTS = {ot.E4M3FN: torch.float8_e4m3fn, ot.E5M2: torch.float8_e5m2, ot.E2M1: torch.float4_e2m1fn_x2,
            ot.E2M3: "fp6_e2m3", ot.E3M2: "fp6_e3m2"}


def tensor(x):
    t = torch.from_numpy(ot.to_float(x).copy())
    return t.to(torch.bfloat16) if ot.of(x) is ot.BFLOAT16 else t


def elements(data, t, shape):
    raw = data.view(torch.uint8).numpy()
    if t is ot.E2M1:
        raw = np.stack([raw & 15, raw >> 4], -1)
    return ot.from_codes(raw.reshape(shape), t)


def rows(seed, count=2000):
    """Blocks of numbers of every size, none all zero, with scales far from the denormal range."""
    r = rng("torchao", seed)
    x = r.standard_normal((count, 128)) * np.exp2(r.integers(-90, 90, (count, 1)))
    x = np.where(r.random(x.shape) < 0.1, np.copysign(0.0, x), x)
    x[:, ::32] += 1e-30
    return x.astype(np.float32)


@pytest.mark.parametrize("t", ELEMENTS, ids=name)
@pytest.mark.parametrize("xt", (ot.FLOAT, ot.BFLOAT16), ids=name)
def test_microscaling(client, xt, t):
    x = ot.round_to(rows(t.name), xt)
    scale, data = to_mx(tensor(x), ELEMENTS[t], 32)
    ours = ask.dynamic_quantize(client, x, output_type=t, scale_type=ot.E8M0, axis=1, block_size=32)
    same(ours.scale, ot.from_codes(scale.view(torch.uint8).numpy(), ot.E8M0), f"scale of MX {t.name}")
    same(ours.y, elements(data, t, x.shape), f"MX {t.name}", x)
    count(f"{VERSION}, microscaling", x.size)


@pytest.mark.parametrize("t", ELEMENTS, ids=name)
def test_microscaling_of_zeros_and_denormals_differs(client, t):
    x = np.zeros((2, 32), np.float32)
    x[1, 0] = 1e-44
    theirs = to_mx(tensor(x), ELEMENTS[t], 32)[0].view(torch.uint8).numpy()[:, 0].tolist()
    ours = ot.codes(ask.dynamic_quantize(client, x, output_type=t, scale_type=ot.E8M0, axis=1, block_size=32).scale)[:, 0].tolist()
    assert (theirs, ours) == ([0, 0], [0x7F, 0])


def nvfp4(client, x):
    ours = ask.dynamic_quantize(client, x, output_type=ot.E2M1, scale_type=ot.E4M3FN, axis=1, block_size=16)
    ts = per_tensor_amax_to_scale(torch.abs(tensor(x)).max())
    scale, data = nvfp4_quantize(tensor(x), 16, ts)
    return ours, (ot.from_codes(scale.view(torch.uint8).numpy().reshape(ours.scale.shape), ot.E4M3FN), elements(data, ot.E2M1, x.shape), ts)


@pytest.mark.parametrize("xt", (ot.FLOAT, ot.BFLOAT16), ids=name)
def test_nvfp4(client, xt):
    r = rng("torchao nvfp4", xt.name)
    x = ot.round_to((r.standard_normal((2000, 128)) * np.exp2(r.integers(-3, 3, (2000, 1)))).astype(np.float32), xt)
    ours, (scale, y, ts) = nvfp4(client, x)
    same(ours.tensor_scale, np.array(ts.item(), np.float32), "tensor scale")
    same(ours.scale, scale, "block scales")
    v = ot.to_float(x) / np.repeat(ot.to_float(scale) * np.float32(ts.item()), 16, 1)
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    near = (np.abs(np.abs(v)[..., None] / ties - 1) < 1e-6).any(-1)
    different = ot.codes(ours.y) != ot.codes(y)
    assert not (different & ~near).any()
    count(f"{VERSION}, NVFP4", int((~near).sum()))


def test_nvfp4_next_to_a_tie_differs(client):
    """x / (bs * ts) is 1.25, a tie; with torchao's reciprocal the result is above it."""
    x = np.zeros((1, 16), np.float32)
    x[0, 0], x[0, 1] = np.float32(6.732655), np.float32(1.4026365)
    ours, (_, y, _) = nvfp4(client, x)
    assert (ot.to_float(y)[0, 1], ot.to_float(ours.y)[0, 1]) == (1.5, 1.0)


def test_nvfp4_of_small_blocks_differs(client):
    """torchao's least block scale is 2^-6, the specification's 2^-9 (the smallest that E4M3FN has)."""
    x = np.zeros((1, 32), np.float32)
    x[0, 0], x[0, 16] = 1000.0, 0.01
    ours, (scale, _, _) = nvfp4(client, x)
    assert ot.to_float(scale)[0, 1] == 2.0**-6 and ot.to_float(ours.scale)[0, 1] == 2.0**-8
