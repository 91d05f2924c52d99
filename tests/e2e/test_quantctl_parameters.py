"""quantctl parameters against a server: files that calibrate has written, scales on the command line, ranges of embeddings."""

import hashlib
import json

import numpy as np
from quantctl import quantctl
from sets import X, check_file, quantize_set
from support import parameters_pb2 as pp
from support import pb


def test_put_get_list(start, tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    server = start(f"--parameters_dir={folder}")
    numbers = ("--scale=0.5,0.25,2", "--zero_point=1,2,3", "--type=int8", "--axis=1")
    code, out, error = quantctl("parameters", "put", "a", *numbers, address=server.address)
    assert (code, error) == (0, "")
    reference = out.strip()
    data = check_file(folder, reference)
    parsed = pp.ParameterSet.FromString(data).quantize
    assert parsed.axis == 1 and parsed.zero_point.data_type == 3 and len(parsed.scale.raw_data) == 12
    answer = server.stub.Quantize(pb.QuantizeRequest(x=X, parameters=reference), timeout=10)
    assert answer.parameters == reference
    file = tmp_path / "set"
    code, out, _ = quantctl("parameters", "get", "a", "-o", file, address=server.address)
    assert code == 0 and out.startswith(reference) and hashlib.sha256(file.read_bytes()).hexdigest() == reference.split(":")[1]
    code, _, error = quantctl("parameters", "get", "a", "-o", file, address=server.address)
    assert code == 2 and "set" in error
    assert quantctl("parameters", "get", reference, "-o", file, "--force", "--quiet", address=server.address) == (0, "", "")
    code, out, _ = quantctl("parameters", "put", "b", "--scale=0.5", "--json", address=server.address)
    second = json.loads(out)["reference"]
    assert pp.ParameterSet.FromString(check_file(folder, second)) == quantize_set(0.5)
    assert quantctl("parameters", "list", address=server.address)[1].splitlines() == [reference, second]
    assert quantctl("parameters", "list", "b", address=server.address)[1].splitlines() == [second]


def test_what_calibrate_has_written(start, tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    server = start(f"--parameters_dir={folder}")
    x = np.random.default_rng(3).normal(size=(100, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    for kind in ("int8", "uint4", "float8e4m3fn"):
        ranges = tmp_path / f"{kind}.safetensors"
        code, _, error = quantctl("calibrate", tmp_path / "x.npy", "-o", ranges, f"--type={kind}", "--axis=1")
        assert code == 0, error
        code, out, error = quantctl("parameters", "put", kind, ranges, address=server.address)
        assert code == 0, error
        parsed = pp.ParameterSet.FromString(check_file(folder, out.strip())).quantize
        assert parsed.axis == 1 and list(parsed.scale.shape) == [6] and parsed.HasField("zero_point") == (kind != "float8e4m3fn")
        assert (parsed.output_type == 17) == (kind == "float8e4m3fn")
        request = pb.QuantizeRequest(x=dict(data_type=1, shape=x.shape, raw_data=x.tobytes()), parameters=out.strip())
        assert server.stub.Quantize(request, timeout=10).parameters == out.strip()
    code, out, error = quantctl(
        "parameters", "put", "embedder", tmp_path / "int8.safetensors", "--for=embeddings", "--preset=sentence-transformers-int8",
        address=server.address
    )
    assert code == 0, error
    parsed = pp.ParameterSet.FromString(check_file(folder, out.strip())).quantize_embeddings
    assert list(parsed.ranges.shape) == [2, 6] and parsed.recipe == 1


def test_what_is_wrong(start, tmp_path):
    server = start()
    for words, code, text in (
        (["put", "a", "--scale=1"], 1, "--parameters_dir"),
        (["list"], 1, "--parameters_dir"),
        (["put"], 2, "NAME"),
        (["put", "a"], 2, "--scale"),
        (["put", "a", "--for=embeddings"], 2, "--preset"),
        (["put", "a", "--scale=1", "--type=int7"], 2, "--type"),
        (["put", "a", tmp_path / "nothing.safetensors"], 2, "nothing.safetensors"),
        (["get"], 2, "REFERENCE"),
        (["get", "a"], 2, "-o"),
        (["remove", "a"], 2, "remove"),
        ([], 2, "put, get and list"),
        (["put", "a", "b", "c"], 2, "FILE"),
    ):
        got, out, error = quantctl("parameters", *words, address=server.address)
        assert (got, out) == (code, "") and text in error and error.count("\n") == 1, (words, got, error)


def test_files_by_stored_parameters(start, tmp_path):
    """The same bytes as with the flags from which the set was made."""
    (tmp_path / "sets").mkdir()
    server = start(f"--parameters_dir={tmp_path / 'sets'}")
    np.save(tmp_path / "x.npy", np.random.default_rng(5).normal(size=(50, 6)).astype(np.float32))
    flags = ["--scale=0.1,0.2,0.3,0.4,0.5,0.6", "--type=int8", "--axis=1"]
    code, out, error = quantctl("parameters", "put", "linear", *flags, address=server.address)
    assert code == 0, error
    reference = out.strip()
    here, there = tmp_path / "here.safetensors", tmp_path / "there.safetensors"
    assert quantctl("quantize", tmp_path / "x.npy", "-o", here, *flags)[0] == 0
    code, _, error = quantctl("quantize", tmp_path / "x.npy", "-o", there, f"--parameters={reference}", address=server.address)
    assert code == 0, error
    assert here.read_bytes() == there.read_bytes()
    code, out, error = quantctl("parameters", "put", "unit", "--for=embeddings", "--preset=usearch-i8", "--dimensions=4", address=server.address)
    assert code == 0, error
    unit = out.strip()
    assert quantctl("embeddings", "quantize", tmp_path / "x.npy", "-o", tmp_path / "a.npy", "--preset=usearch-i8", "--dimensions=4")[0] == 0
    code, _, error = quantctl("embeddings", "quantize", tmp_path / "x.npy", "-o", tmp_path / "b.npy", f"--parameters={unit}", address=server.address)
    assert code == 0, error
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    for words, code, text in (
        *((["quantize", f"--parameters={reference}", flag], 2, "--parameters already says")
          for flag in ("--type=int8", "--axis=0", "--zero_point_order=before_rounding", "--non_finite=ignore", "--nosaturate", "--symmetric")),
        *((["embeddings quantize", f"--parameters={unit}", flag], 2, "--parameters already says")
          for flag in ("--dimensions=3", "--ranges_out=r.safetensors", "--non_finite=ignore")),
        (["quantize", f"--parameters={unit}"], 1, "embeddings"),
        (["quantize", "--parameters=nobody"], 1, "nobody"),
        (["quantize", "--parameters=../a"], 1, "../a"),
    ):
        got, _, error = quantctl(*words[0].split(), tmp_path / "x.npy", "-o", tmp_path / "c.npy", *words[1:], address=server.address)
        assert got == code and text in error, error
    assert quantctl("quantize", tmp_path / "x.npy", "-o", tmp_path / "c.npy", f"--parameters={reference}")[0] == 2
