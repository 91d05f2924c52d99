"""quantctl against a running server: results, pieces, every type, errors and exit codes."""

import json
import random

import numpy as np
import pytest
from quantctl import TYPES, quantctl, read_quantized
from support import SERVICE, pb, tensor

OUTPUTS = "uint8 int8 uint16 int16 uint4 int4 uint2 int2".split()
FLOATS = "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz float4e2m1".split()
BLOCKS = "mxfp8 mxfp8e5m2 mxfp4 mxint8 nvfp4".split()
# Bytes of a message that are left for tensors by --piece_bytes=4096 + this.
SMALL_PIECES = (140, 300, 1000, 3000)


@pytest.fixture
def ctl(server, tmp_path, monkeypatch):
    """ctl(*arguments): runs quantctl in a folder of its own; the JSON document, or the text."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        got, out, err = quantctl(*arguments, address=server.address)
        assert got == code, f"exit {got}: {out}{err}"
        if code:
            return err
        return json.loads(out) if "--json" in arguments else out

    run.address = server.address
    return run


def save(name, array):
    np.save(name, array)
    return name


def normal(shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_the_file_holds_what_the_server_answers(server, ctl):
    x = normal((50, 30))
    document = ctl("quantize", save("x.npy", x), "-o", "y.safetensors", "--type=int8", "--axis=0", "--json")
    answer = server.stub.DynamicQuantize(
        pb.DynamicQuantizeRequest(x=tensor(x), output_type=3, axis=0, report_error=True)
    )
    parts = read_quantized("y.safetensors")
    assert parts["y"].tobytes() == answer.y.raw_data
    assert parts["scale"].tobytes() == answer.y_scale.raw_data
    assert parts["zero_point"].tobytes() == answer.y_zero_point.raw_data
    (report,) = document["tensors"]
    assert report["quantization_error"]["sqnr_db"] == answer.quantization_error.sqnr_db
    assert (report["shape"], report["scale"]["shape"]) == ([50, 30], [50])
    assert (report["bytes_before"], report["bytes_after"]) == (6000, 1500 + 200 + 50)
    assert report["scale"]["min"] == parts["scale"].min()


@pytest.mark.parametrize("kind", OUTPUTS + FLOATS + BLOCKS)
@pytest.mark.parametrize("output", ["y.npy", "y.safetensors"])
def test_every_type_comes_back(ctl, kind, output):
    x = normal((7, 33), dtype=np.float32)
    report = ctl("quantize", save("x.npy", x), "-o", output, f"--type={kind}", "--json")["tensors"][0]
    ctl("dequantize", output, "-o", "back.npy")
    back = np.load("back.npy")
    assert back.shape == x.shape and back.dtype == np.float32
    error = report["quantization_error"]
    # The report is in double, the file in FLOAT: they differ by its rounding.
    rounding = float(np.abs(back).max()) * 2**-24
    difference = x.astype(float) - back
    assert np.sqrt(np.square(difference).mean()) == pytest.approx(np.sqrt(error["mean_squared_error"]), abs=rounding)
    assert np.abs(difference).max() == pytest.approx(error["max_absolute_error"], abs=rounding)
    if output == "y.safetensors":
        parts = read_quantized(output)
        assert parts["y"].shape == x.shape
        assert parts["y"].dtype == TYPES[report["output_type"]]


def random_case(rnd):
    rank = rnd.choice([1, 2, 2, 3, 4])
    shape = tuple(rnd.choice([1, 2, 3, 5, 7, 16, 33, 40, 64, 100]) for _ in range(rank))
    kind = rnd.choice(OUTPUTS + FLOATS + BLOCKS)
    flags = [f"--type={kind}"]
    granularity = rnd.choice(["tensor", "axis", "block", "shape"]) if kind not in BLOCKS else "tensor"
    if granularity == "axis":
        flags += [f"--axis={rnd.randrange(-rank, rank)}"]
    if granularity == "block":
        flags += [f"--axis={rnd.randrange(rank)}", f"--block_size={rnd.choice([1, 2, 3, 16, 32])}"]
    if granularity == "shape":
        flags += ["--block_shape=" + ",".join(str(rnd.choice([-1, 1, 2, 8])) for _ in range(rank))]
    if rnd.random() < 0.3:
        flags += ["--symmetric"]
    if rnd.random() < 0.2 and kind not in BLOCKS:
        flags += ["--scale_type=" + rnd.choice(["float16", "bfloat16"])]
    return shape, flags


def same_error(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert other[key] == (value if value is None else pytest.approx(value, rel=2e-6, abs=1e-300)), key


def has_no_scale(ctl, flags):
    """Whether x.npy is refused because a small block's range, over up to 65535 codes, is no number of FLOAT16."""
    if "--scale_type=float16" not in flags:
        return False
    code, _, err = quantctl("quantize", "x.npy", "-o", "tried.safetensors", *flags, address=ctl.address)
    assert code == 0 or "underflows to 0 in FLOAT16" in err, err
    return code != 0


@pytest.mark.parametrize("kind", ["uint16", "int16"])
@pytest.mark.parametrize("pieces", [[], ["--piece_bytes=5000"]], ids=["whole", "pieces"])
def test_a_scale_that_its_type_cannot_hold_is_refused(ctl, kind, pieces):
    """A range of 0.001 over 65535 codes is a scale of 1.5e-8, and FLOAT16 ends at 6e-8."""
    x = np.ones(4000, np.float32)
    x[2000] = 0.001
    flags = [f"--type={kind}", "--axis=0", "--block_size=1", "--scale_type=float16", *pieces]
    error = ctl("quantize", save("x.npy", x), "-o", "y.safetensors", *flags, code=1)
    assert "underflows to 0 in FLOAT16" in error and "0.001" in error
    ctl("quantize", "x.npy", "-o", "y.safetensors", *flags[:3], *pieces)


@pytest.mark.parametrize("part", range(6))
def test_pieces_give_the_same_bytes(ctl, part):
    """Random shapes, types, blocks: whole and in pieces, quantized and back."""
    seed = random.randrange(2**32)
    print("seed", seed)
    rnd = random.Random(seed)
    several = 0
    while several < 6:
        shape, flags = random_case(rnd)
        if not 600 < np.prod(shape) < 40000:
            continue
        x = normal(shape, rnd.randrange(2**32), rnd.choice([np.float32, np.float16]))
        if rnd.random() < 0.3:
            x = np.asfortranarray(x)
        if rnd.random() < 0.3:
            x[tuple(rnd.randrange(n) for n in shape)] = rnd.choice([np.nan, np.inf, -np.inf])
            flags += ["--non_finite=ignore"]
        save("x.npy", x)
        pieces = f"--piece_bytes={4096 + rnd.choice(SMALL_PIECES)}"
        if has_no_scale(ctl, flags):
            assert "underflows to 0 in FLOAT16" in ctl("quantize", "x.npy", "-o", "no.safetensors", pieces, *flags, code=1)
            continue
        whole = ctl("quantize", "x.npy", "-o", "whole.safetensors", "--json", *flags)["tensors"][0]
        cut = ctl("quantize", "x.npy", "-o", "cut.safetensors", "--json", pieces, *flags)["tensors"][0]
        case = (shape, x.dtype, flags, pieces)
        with open("whole.safetensors", "rb") as one, open("cut.safetensors", "rb") as other:
            assert one.read() == other.read(), case
        same_error(whole["quantization_error"], cut["quantization_error"])
        ctl("dequantize", "whole.safetensors", "-o", "one.npy")
        ctl("dequantize", "cut.safetensors", "-o", "other.npy", pieces)
        with open("one.npy", "rb") as one, open("other.npy", "rb") as other:
            assert one.read() == other.read(), case
        several += cut["pieces"] > 1


def test_pieces_of_int8_are_never_minus_128(ctl):
    """DynamicQuantize's INT8 ends at -127; Quantize, which pieces go through, at -128."""
    x = np.concatenate([[-99.5, 154.5], np.linspace(-99.5, 154.5, 5000)]).astype(np.float32)
    save("x.npy", x)
    whole = ctl("quantize", "x.npy", "-o", "whole.safetensors", "--type=int8", "--json")["tensors"][0]
    cut = ctl("quantize", "x.npy", "-o", "cut.safetensors", "--type=int8", "--json", "--piece_bytes=5000")["tensors"][0]
    assert cut["pieces"] > 1
    one, other = (read_quantized(f"{name}.safetensors")["y"] for name in ("whole", "cut"))
    assert one.min() == -127
    assert (one == other).all()
    same_error(whole["quantization_error"], cut["quantization_error"])


@pytest.mark.parametrize("flags", [["--scale=0.02", "--zero_point=3"], ["--scale=s.npy", "--axis=0"], ["--scale=g.npy"]])
def test_given_scales_in_pieces(ctl, flags):
    save("x.npy", normal((60, 40)))
    save("s.npy", np.linspace(0.01, 0.05, 60, dtype=np.float32))
    save("g.npy", np.linspace(0.01, 0.05, 100, dtype=np.float32).reshape(20, 5))
    arguments = ["quantize", "x.npy", "--type=uint4", "--json", *flags]
    whole = ctl(*arguments, "-o", "whole.safetensors")["tensors"][0]
    cut = ctl(*arguments, "-o", "cut.safetensors", "--piece_bytes=5000")["tensors"][0]
    assert (whole["pieces"], cut["pieces"] > 1) == (1, True)
    with open("whole.safetensors", "rb") as one, open("cut.safetensors", "rb") as other:
        assert one.read() == other.read()
    same_error(whole["quantization_error"], cut["quantization_error"])


def test_a_file_larger_than_the_servers_messages(start, tmp_path):
    small = start("--max_message_bytes=1048576")
    x = normal((3000, 1000))
    np.save(tmp_path / "x.npy", x)
    code, out, err = quantctl(
        "quantize", tmp_path / "x.npy", "-o", tmp_path / "y.safetensors", "--json", address=small.address
    )
    assert code == 0, err
    assert json.loads(out)["tensors"][0]["pieces"] >= 12
    code, out, err = quantctl("dequantize", tmp_path / "y.safetensors", "-o", tmp_path / "b.npy", address=small.address)
    assert code == 0, err
    scale = read_quantized(tmp_path / "y.safetensors")["scale"]
    assert np.abs(np.load(tmp_path / "b.npy") - x).max() <= scale * 0.5001


def test_given_scale_is_quantize(server, ctl):
    x = np.array([-2.5, 0.25, 0.75, 1e9], np.float32)
    ctl("quantize", save("x.npy", x), "-o", "y.npy", "--type=int8", "--scale=0.5", "--zero_point=-3")
    assert np.load("y.npy").tolist() == [-8, -3, -1, 127]
    assert np.load("y.scale.npy") == np.float32(0.5)
    # Without the files beside it, the flags say what they held.
    ctl("dequantize", save("plain.npy", np.load("y.npy")), "-o", "b.npy", "--scale=0.5", "--zero_point=-3")
    assert np.load("b.npy").tolist() == [-2.5, 0, 1, 65]


def test_before_rounding_and_precision(ctl):
    save("x.npy", np.array([3], np.float32))
    given = ["quantize", "x.npy", "-o", "y.npy", "--scale=2", "--zero_point=1"]
    ctl(*given)
    assert np.load("y.npy") == 3
    ctl(*given, "--zero_point_order=before_rounding")
    assert np.load("y.npy") == 2


def test_non_finite_is_named_by_its_place_in_the_whole(ctl):
    x = normal((40, 50))
    x[33, 7] = np.nan
    save("x.npy", x)
    for pieces in ("--piece_bytes=0", "--piece_bytes=5000"):
        err = ctl("quantize", "x.npy", "-o", "y.npy", pieces, code=1)
        assert str(33 * 50 + 7) in err and "--non_finite=ignore" in err


def test_inspect(ctl):
    x = np.array([[-1, 0, 0.5, 3], [1, 1, np.nan, np.inf]], np.float32)
    (found,) = ctl("inspect", save("x.npy", x), "--json", "--bins=4")["tensors"]
    assert (found["type"], found["shape"], found["bytes"]) == ("float", [2, 4], 32)
    assert (found["min"], found["max"], found["nan"], found["infinite"]) == (-1, 3, 1, 1)
    finite = x[np.isfinite(x)]
    assert found["mean"] == pytest.approx(finite.mean()) and found["std"] == pytest.approx(finite.std())
    assert found["histogram"]["counts"] == [1, 2, 2, 1]
    (found,) = ctl("inspect", "x.npy", "--json", "--type=int4", "--non_finite=ignore")["tensors"]
    error = found["quantization_error"]
    assert error["type"] == "int4" and sum(error["histogram"]["counts"]) == 6
    assert max(map(abs, (error["histogram"]["min"], error["histogram"]["max"]))) == pytest.approx(
        error["max_absolute_error"]
    )
    text = ctl("inspect", "x.npy")
    assert "not finite: 1 NaN, 1 infinite" in text and "####" in text


def test_inspect_needs_no_server(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(5, dtype=np.int64))
    code, out, _ = quantctl("inspect", tmp_path / "x.npy", "--json", address="127.0.0.1:1")
    assert code == 0 and json.loads(out)["tensors"][0]["mean"] == 2
    code, _, err = quantctl("inspect", tmp_path / "x.npy", "--type=int8", address="127.0.0.1:1")
    assert code == 1 and "cannot reach 127.0.0.1:1" in err


def test_info_and_health(server, ctl):
    info = server.stub.GetServerInfo(pb.GetServerInfoRequest())
    document = ctl("info", "--json")
    assert (document["version"], document["target"]) == (info.version, info.target)
    assert document["max_message_bytes"] == info.max_message_bytes
    assert info.version in ctl("info")
    assert ctl("health") == "SERVING\n"
    assert ctl("health", f"--service={SERVICE}", "--json")["status"] == "SERVING"
    assert "NOT_FOUND" in ctl("health", "--service=other", code=1)


def test_unix_socket(start, tmp_path):
    path = tmp_path / "socket"
    start(listen=(f"unix:{path}",))
    assert quantctl("health", f"--address=unix:{path}")[0] == 0


@pytest.mark.parametrize("command", [["health"], ["info"], ["quantize", "x.npy", "-o", "y.npy"]])
def test_no_server_is_exit_code_1_and_advice(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros(3, np.float32))
    code, out, err = quantctl(*command, "--address=127.0.0.1:1")
    assert (code, out) == (1, "")
    assert "cannot reach 127.0.0.1:1" in err and "quantd --listen=127.0.0.1:1" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy"]


def test_what_the_server_refuses_is_exit_code_1(ctl, tmp_path):
    save("x.npy", normal((4, 4)))
    err = ctl("quantize", "x.npy", "-o", "y.npy", "--scale=0", code=1)
    assert "INVALID_ARGUMENT" in err and "field scale" in err
    err = ctl("quantize", "x.npy", "-o", "y.npy", "--type=int32", code=1)
    assert "output_type" in err
    assert not (tmp_path / "y.npy").exists()
