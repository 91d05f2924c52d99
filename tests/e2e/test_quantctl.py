"""quantctl's results: every type there and back, in process and on a server with the same bytes; errors and exit
codes."""

import json
import os
import random

import numpy as np
import pytest
from quantctl import TYPES, quantctl, read_quantized
from support import SERVICE, pb, tensor

OUTPUTS = "uint8 int8 uint16 int16 uint4 int4 uint2 int2".split()
FLOATS = "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz float6e2m3 float6e3m2 float4e2m1".split()
BLOCKS = "mxfp8 mxfp8e5m2 mxfp6e2m3 mxfp6e3m2 mxfp4 mxint8 nvfp4".split()


@pytest.fixture
def ctl(server, tmp_path, monkeypatch):
    """ctl(*arguments): runs quantctl in a folder of its own; the JSON document, or the text. In process unless
    remote=True."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0, remote=False):
        if arguments[0] in ("quantize", "dequantize"):
            arguments += ("--force",)
        got, out, err = quantctl(*arguments, address=server.address if remote else None)
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


def content(path):
    with open(path, "rb") as file:
        return file.read()


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
    # The report is computed in double, the file in FLOAT: they differ by rounding.
    rounding = float(np.abs(back).max()) * 2**-24
    difference = x.astype(float) - back
    assert np.sqrt(np.square(difference).mean()) == pytest.approx(np.sqrt(error["mean_squared_error"]), abs=rounding)
    assert np.abs(difference).max() == pytest.approx(error["max_absolute_error"], abs=rounding)
    (found,) = ctl("inspect", output, "--against=x.npy", "--json")["quantized"]
    assert found["output_type"] == report["output_type"]
    assert found["quantization_error"]["sqnr_db"] == pytest.approx(error["sqnr_db"], rel=1e-5)
    if output == "y.safetensors":
        parts = read_quantized(output)
        assert parts["y"].shape == x.shape
        assert parts["y"].dtype == TYPES[report["output_type"]]


def granularities(rank, rnd, kind):
    """One of each: tensor, axis, block, shape."""
    if kind in BLOCKS:
        return [[]]
    return [
        [],
        [f"--axis={rnd.randrange(-rank, rank)}"],
        [f"--axis={rnd.randrange(rank)}", f"--block_size={rnd.choice([1, 2, 3, 16, 32])}"],
        ["--block_shape=" + ",".join(str(rnd.choice([-1, 1, 2, 8])) for _ in range(rank))],
    ]


@pytest.mark.parametrize("kind", OUTPUTS + FLOATS + BLOCKS)
def test_here_and_on_a_server_the_bytes_are_the_same(ctl, kind):
    seed = random.randrange(2**32)
    print("seed", seed)
    rnd = random.Random(seed)
    rank = rnd.choice([1, 2, 3])
    for granularity in granularities(rank, rnd, kind):
        shape = tuple(rnd.choice([1, 2, 7, 16, 33, 40]) for _ in range(rank))
        x = normal(shape, rnd.randrange(2**32), rnd.choice([np.float32, np.float16]))
        flags = [f"--type={kind}", *granularity]
        if rnd.random() < 0.3:
            x = np.asfortranarray(x)
        if rnd.random() < 0.3:
            x[tuple(rnd.randrange(n) for n in shape)] = rnd.choice([np.nan, np.inf, -np.inf])
            flags += ["--non_finite=ignore"]
        if rnd.random() < 0.3 and not kind.startswith("uint"):
            flags += ["--symmetric"]
        save("x.npy", x)
        here = ctl("quantize", "x.npy", "-o", "here.safetensors", "--json", *flags)["tensors"][0]
        there = ctl("quantize", "x.npy", "-o", "there.safetensors", "--json", *flags, remote=True)["tensors"][0]
        assert content("here.safetensors") == content("there.safetensors"), (shape, flags)
        for report in (here, there):
            del report["seconds"], report["file_seconds"]
        assert there.pop("server_seconds") > 0
        assert here == there
        ctl("dequantize", "here.safetensors", "-o", "one.npy")
        ctl("dequantize", "there.safetensors", "-o", "other.npy", remote=True)
        assert content("one.npy") == content("other.npy"), (shape, flags)


def test_symmetric_keeps_negative_values(ctl):
    """Its default type is int8; an unsigned type is refused if negative values would become 0."""
    save("x.npy", np.linspace(-3, 3, 24, dtype=np.float32))
    assert ctl("quantize", "x.npy", "-o", "y.safetensors", "--symmetric", "--json")["tensors"][0]["output_type"] == "int8"
    for dtype in (np.float32, np.float16):
        save("x.npy", np.array([-1, -0.0, 0, 2, -3], dtype))
        err = ctl("quantize", "x.npy", "-o", "z.safetensors", "--symmetric", "--type=uint8", code=2)
        assert "2 negative values" in err and not os.path.exists("z.safetensors")
    save("x.npy", np.array([1, -0.0, 2], np.float32))
    ctl("quantize", "x.npy", "-o", "z.safetensors", "--symmetric", "--type=uint8", "--json")


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("kind", ["uint16", "int16"])
def test_a_scale_that_its_type_cannot_hold_is_refused(ctl, kind, remote):
    """A range of 0.001 over 65535 codes is a scale of 1.5e-8, and FLOAT16 ends at 6e-8."""
    x = np.ones(4000, np.float32)
    x[2000] = 0.001
    flags = [f"--type={kind}", "--axis=0", "--block_size=1"]
    arguments = ["quantize", save("x.npy", x), "-o", "y.safetensors", *flags]
    error = ctl(*arguments, "--scale_type=float16", code=1, remote=remote)
    assert "underflows to 0 in FLOAT16" in error and "0.001" in error
    ctl(*arguments, remote=remote)


def test_a_tensor_over_the_servers_limit(start, ctl):
    """quantd::client sends it in pieces, if scales belong to rows and no report on the whole is wanted."""
    small = start("--max_message_bytes=1048576")
    save("x.npy", normal((1000, 700)))
    code, _, err = quantctl("quantize", "x.npy", "-o", "there.safetensors", address=small.address)
    assert code == 1 and "1048576" in err and "without --address" in err and err.count("\n") == 1, err
    for flags in (["--type=int4", "--axis=0", "--noreport_error"], ["--type=mxfp4", "--noreport_error"]):
        ctl("quantize", "x.npy", "-o", "here.safetensors", "--force", *flags)
        code, out, err = quantctl("quantize", "x.npy", "-o", "there.safetensors", "--force", *flags, address=small.address)
        assert (code, err) == (0, ""), (flags, err)
        assert content("here.safetensors") == content("there.safetensors")
    code, out, err = quantctl("dequantize", "there.safetensors", "-o", "back.npy", address=small.address)
    assert (code, err) == (0, "")
    ctl("dequantize", "here.safetensors", "-o", "back_here.npy")
    assert content("back_here.npy") == content("back.npy")


def test_given_scale_is_quantize(ctl):
    x = np.array([-2.5, 0.25, 0.75, 1e9], np.float32)
    for remote in (True, False):
        ctl("quantize", save("x.npy", x), "-o", "y.npy", "--type=int8", "--scale=0.5", "--zero_point=-3", remote=remote)
        assert np.load("y.npy").tolist() == [-8, -3, -1, 127]
        assert np.load("y.scale.npy") == np.float32(0.5)
    # Without the files beside it, flags replace their contents.
    ctl("dequantize", save("plain.npy", np.load("y.npy")), "-o", "b.npy", "--scale=0.5", "--zero_point=-3")
    assert np.load("b.npy").tolist() == [-2.5, 0, 1, 65]


@pytest.mark.parametrize("flags", [["--scale=s.npy", "--axis=0"], ["--scale=g.npy"], ["--scale=d.npy", "--axis=0"]])
def test_scales_of_files(ctl, flags):
    save("x.npy", normal((60, 40)))
    save("s.npy", np.linspace(0.01, 0.05, 60, dtype=np.float32))
    save("d.npy", np.linspace(0.01, 0.05, 60, dtype=np.float32).astype(">f4"))
    save("g.npy", np.asfortranarray(np.linspace(0.01, 0.05, 100, dtype=np.float32).reshape(20, 5)))
    arguments = ["quantize", "x.npy", "--type=uint4", *flags]
    ctl(*arguments, "-o", "here.safetensors")
    ctl(*arguments, "-o", "there.safetensors", remote=True)
    assert content("here.safetensors") == content("there.safetensors")
    assert read_quantized("here.safetensors")["scale"].tobytes() == np.load(flags[0][8:]).astype("<f4").tobytes("C")


def test_before_rounding_and_precision(ctl):
    save("x.npy", np.array([3], np.float32))
    given = ["quantize", "x.npy", "-o", "y.npy", "--scale=2", "--zero_point=1"]
    ctl(*given)
    assert np.load("y.npy") == 3
    ctl(*given, "--zero_point_order=before_rounding")
    assert np.load("y.npy") == 2


@pytest.mark.parametrize("remote", [False, True])
def test_non_finite_is_named_by_its_place(ctl, remote):
    x = normal((40, 50))
    x[33, 7] = np.nan
    err = ctl("quantize", save("x.npy", x), "-o", "y.npy", code=1, remote=remote)
    assert str(33 * 50 + 7) in err and "--non_finite=ignore" in err and err.count("\n") == 1


def test_inspect(ctl):
    x = np.array([[-1, 0, 0.5, 3], [1, 1, np.nan, np.inf]], np.float32)
    (found,) = ctl("inspect", save("x.npy", x), "--json", "--bins=4")["tensors"]
    assert (found["type"], found["shape"], found["bytes"]) == ("float", [2, 4], 32)
    assert (found["min"], found["max"], found["nan"], found["infinite"]) == (-1, 3, 1, 1)
    finite = x[np.isfinite(x)]
    assert found["mean"] == pytest.approx(finite.mean()) and found["std"] == pytest.approx(finite.std())
    assert found["histogram"]["counts"] == [1, 2, 2, 1]
    for remote in (False, True):
        (found,) = ctl("inspect", "x.npy", "--json", "--type=int4", "--non_finite=ignore", remote=remote)["tensors"]
        error = found["quantization_error"]
        assert error["type"] == "int4" and sum(error["histogram"]["counts"]) == 6
        assert max(map(abs, (error["histogram"]["min"], error["histogram"]["max"]))) == pytest.approx(
            error["max_absolute_error"]
        )
    text = ctl("inspect", "x.npy", "--details")
    assert "not finite: 1 NaN, 1 infinite" in text and "####" in text
    assert "####" not in ctl("inspect", "x.npy", "--details", "--bins=0")


def test_inspect_of_a_quantized_file(ctl):
    x = normal((8, 64))
    ctl("quantize", save("x.npy", x), "-o", "y.safetensors", "--type=uint4", "--axis=-1", "--block_size=16")
    assert "y  float [8, 64] as uint4, blocks of 16 along axis -1, scale float [8, 4], zero point uint4" in ctl(
        "inspect", "y.safetensors", "--details"
    )
    (found,) = ctl("inspect", "y.safetensors", "--json")["quantized"]
    assert (found["axis"], found["block_size"], "quantization_error" in found) == (-1, 16, False)
    save("other.npy", normal((8, 63)))
    assert "[8, 64]" in ctl("inspect", "y.safetensors", "--against=other.npy", code=2)
    assert "no quantized tensor" in ctl("inspect", "x.npy", "--against=other.npy", code=2)


def test_inspect_needs_no_server(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(5, dtype=np.int64))
    code, out, _ = quantctl("inspect", tmp_path / "x.npy", "--json", address="127.0.0.1:1")
    assert code == 0 and json.loads(out)["tensors"][0]["mean"] == 2
    code, _, err = quantctl("inspect", tmp_path / "x.npy", "--type=int8", address="127.0.0.1:1")
    assert code == 1 and "cannot reach 127.0.0.1:1" in err


def test_info_and_health(server, ctl):
    info = server.stub.GetServerInfo(pb.GetServerInfoRequest())
    document = ctl("info", "--json", remote=True)
    assert (document["version"], document["target"]) == (info.version, info.target)
    assert document["max_message_bytes"] == info.max_message_bytes
    assert info.version in ctl("info", remote=True)
    assert ctl("health", remote=True) == "SERVING\n"
    assert ctl("health", f"--service={SERVICE}", "--json", remote=True)["status"] == "SERVING"
    assert "NOT_FOUND" in ctl("health", "--service=other", code=1, remote=True)


def test_unix_socket(start, tmp_path):
    path = tmp_path / "socket"
    start(listen=(f"unix:{path}",))
    assert quantctl("health", f"--address=unix:{path}")[0] == 0


@pytest.mark.parametrize("command", ["health", "info"])
def test_without_an_address_the_servers_own_is_asked(server, start, tmp_path, monkeypatch, command):
    """As in a container, where the environment says on which addresses the server listens."""
    port = server.address.rsplit(":", 1)[1]
    for listen in (f"0.0.0.0:{port}", f"[::]:{port}", f"127.0.0.1:{port},127.0.0.1:1"):
        monkeypatch.setenv("QUANTD_LISTEN", listen)
        code, out, err = quantctl(command, "--json")
        assert (code, err) == (0, "") and json.loads(out)["address"] == f"127.0.0.1:{port}"
    monkeypatch.setenv("QUANTD_LISTEN", "127.0.0.1:1")
    assert quantctl(command)[0] == 1
    assert quantctl(command, f"--address={server.address}")[0] == 0
    assert quantctl(command, address=server.address)[0] == 0
    for listen in ("127.0.0.1:0", "nowhere", "", "unix:"):
        monkeypatch.setenv("QUANTD_LISTEN", listen)
        code, out, err = quantctl(command)
        assert (code, out, err.count("\n")) == (2, "", 1) and f"QUANTD_LISTEN is '{listen}'" in err
    monkeypatch.delenv("QUANTD_LISTEN")
    start(listen=(f"unix:{tmp_path}/socket",))
    monkeypatch.setenv("QUANTD_LISTEN", f"unix:{tmp_path}/socket")
    assert quantctl(command)[0] == 0


@pytest.mark.parametrize("command", [["health"], ["info"], ["quantize", "x.npy", "-o", "y.npy"]])
def test_no_server_is_exit_code_1_and_advice(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros(3, np.float32))
    code, out, err = quantctl(*command, "--address=127.0.0.1:1")
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert "cannot reach 127.0.0.1:1" in err and "quantd --listen=127.0.0.1:1" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy"]


@pytest.mark.parametrize("remote", [False, True])
def test_what_cannot_be_done_is_exit_code_1(ctl, tmp_path, remote):
    save("x.npy", normal((4, 4)))
    err = ctl("quantize", "x.npy", "-o", "y.npy", "--scale=0", code=1, remote=remote)
    assert "INVALID_ARGUMENT" in err and "field scale" in err
    err = ctl("quantize", "x.npy", "-o", "y.npy", "--type=int32", code=1, remote=remote)
    assert "output_type" in err
    assert "axis is 2, x has 2 dimensions" in ctl("quantize", "x.npy", "-o", "y.npy", "--axis=2", code=1, remote=remote)
    assert not (tmp_path / "y.npy").exists()
