"""quantctl convert against the packages, bit for bit: hard weights of every layout and type, there and back.

Our parts are compared with the package's parts of the same weight, and our decoding of the package's file with its own.
QUANTD_WEIGHTS sets the number of weights of each (240).
"""

import json
import os
import subprocess
from pathlib import Path

import gguf
import golden
import hard
import numpy as np
import packages
import pytest
import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
QUANTCTL = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client/quantctl"
WEIGHTS = int(os.environ.get("QUANTD_WEIGHTS", "240"))
OUTPUTS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def convert(source, to, out, code=0):
    """Its one line of error, unless `code` is 0."""
    ended = subprocess.run(
        [QUANTCTL, "convert", source, "-o", out, f"--to={to}", "--quiet"], capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == code, f"exit {ended.returncode}: {ended.stdout}{ended.stderr}"
    return ended.stderr


def part_name(name, suffix):
    """As in the core's PartName; every weight here is called NAME.weight."""
    return name.removesuffix(".weight") + suffix if suffix == ".SCB" else name + suffix


class Case:
    """Weights of one layout and type, and what the package makes of them."""

    def __init__(self, layout, dtype):
        self.layout, self.dtype = layout, dtype
        self.weights, self.refused, self.not_followed = {}, {}, 0
        for index in range(WEIGHTS * 4):
            weight = packages.tensor(hard.weight(dtype, index, hard.shape_of(index, golden.LAYOUTS[layout])))
            parts = packages.encode(layout, weight)
            name = f"m{index}.weight"
            if packages.is_refused(layout, weight, parts):
                self.refused[name] = weight
            elif packages.is_not_followed(layout, weight, parts):
                self.not_followed += 1
            else:
                self.weights[name] = (weight, parts)
            if len(self.weights) == WEIGHTS:
                break

    def tensors(self):
        """The package's parts under their names in a file."""
        return {
            part_name(name, suffix): value.contiguous() for name, (_, parts) in self.weights.items() for suffix, value in parts.items()
        }


def written_by_gguf(path, case):
    writer = gguf.GGUFWriter(path, "llama")
    kind = packages.ggml(case.layout.partition(":")[2])
    for name, (weight, parts) in case.weights.items():
        stored = parts[""].numpy()
        if kind == gguf.GGMLQuantizationType.F16:
            writer.add_tensor(name, stored.view(np.float16).reshape(weight.shape))
        else:
            writer.add_tensor(name, stored.reshape(weight.shape[0], -1), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def with_our_offset(parts, weight, ours):
    """The package's -double, with our mean: the package sums in another order."""
    suffix = next(key for key in parts if ".quant_state" in key)
    text, theirs = (json.loads(bytes(value[suffix].tolist())) for value in (ours, parts))
    offset = text["nested_offset"]
    assert offset == pytest.approx(theirs["nested_offset"], rel=1e-6)
    assert json.dumps(text).encode() == bytes(ours[suffix].tolist())  # written by Python's repr
    assert {**text, "nested_offset": 0} == {**theirs, "nested_offset": 0}
    _, state = packages.bnb.quantize_4bit(weight.clone(), blocksize=64, quant_type=text["quant_type"])
    codes, nested = packages.bnb.quantize_blockwise(state.absmax - torch.tensor(offset, dtype=torch.float32), blocksize=256)
    return {**parts, suffix: ours[suffix], ".absmax": codes, ".nested_absmax": nested.absmax}


def without_signs_of_zero(layout, stored):
    """The minimums of Q4_1 and Q5_1, among whose zeros numpy chooses by the CPU."""
    size = {"gguf:q4_1": 20, "gguf:q5_1": 24}.get(layout)
    if size is None or packages.ZEROS_AS_OURS:
        return stored
    blocks = np.frombuffer(stored, np.uint8).reshape(-1, size).copy()
    minimums = blocks[:, 2:4].copy().view(np.uint16)
    minimums[minimums == 0x8000] = 0
    blocks[:, 2:4] = minimums.view(np.uint8)
    return blocks.tobytes()


def differences(case, folder):
    """Of the parts that we write: the weights' names, and which part."""
    save_file({name: weight for name, (weight, _) in case.weights.items()}, folder / "source.safetensors")
    found = []
    if case.layout.startswith("gguf:"):
        convert(folder / "source.safetensors", case.layout, folder / "ours.gguf")
        ours = {one.name: one for one in gguf.GGUFReader(folder / "ours.gguf").tensors}
        for name, (weight, parts) in case.weights.items():
            assert ours[name].tensor_type == packages.ggml(case.layout.partition(":")[2])
            assert list(ours[name].shape) == list(weight.shape)[::-1]
            got, want = ours[name].data.tobytes(), packages.raw(parts[""])
            if without_signs_of_zero(case.layout, got) != without_signs_of_zero(case.layout, want):
                found.append(name)
        return found
    convert(folder / "source.safetensors", case.layout, folder / "ours.safetensors")
    tensors = load_file(folder / "ours.safetensors")
    for name, (weight, parts) in case.weights.items():
        ours = {suffix: tensors.pop(part_name(name, suffix)) for suffix in parts}
        if case.layout.endswith("-double"):
            parts = with_our_offset(parts, weight, ours)
        for suffix, want in parts.items():
            got = ours[suffix]
            if (got.dtype, got.shape) != (want.dtype, want.shape) or packages.raw(got) != packages.raw(want):
                found.append(name + suffix)
    assert not tensors, "tensors that the package does not write"
    return found


def differences_back(case, folder):
    """Of our decodings."""
    source = folder / ("theirs.gguf" if case.layout.startswith("gguf:") else "theirs.safetensors")
    if source.suffix == ".gguf":
        written_by_gguf(source, case)
    else:
        save_file(case.tensors(), source)
    found, unread = [], 0
    for to, output in OUTPUTS.items():
        convert(source, to, folder / f"{to}.safetensors")
        ours = load_file(folder / f"{to}.safetensors")
        for name, (weight, parts) in case.weights.items():
            want = packages.decode(case.layout, parts, tuple(weight.shape), output)
            if want is None:
                unread += 1
                continue
            got = ours[name]
            assert (got.dtype, got.shape) == (output, weight.shape)
            nan = want.isnan() & got.isnan()
            want, got = (torch.where(nan, torch.zeros_like(value), value) for value in (want, got))
            if packages.raw(got) != packages.raw(want):
                found.append(f"{name} to {to}")
    return found, unread


@pytest.mark.parametrize("dtype", hard.TYPES)
@pytest.mark.parametrize("layout", golden.LAYOUTS)
def test_the_bits_are_those_of_the_package(layout, dtype, tmp_path, record_property):
    case = Case(layout, dtype)
    assert len(case.weights) == WEIGHTS
    there = differences(case, tmp_path)
    back, unread = differences_back(case, tmp_path)
    row = f"{layout} {dtype}: {len(case.weights)} weights, {len(there)} and {len(back)} differ; {len(case.refused)} refused, "
    row += f"{case.not_followed} not followed, {unread} decodings that the package does not have"
    record_property("row", row)
    print(row)
    assert (there, back) == ([], [])
    absent = tmp_path / ("absent.gguf" if layout.startswith("gguf:") else "absent.safetensors")
    for name, weight in list(case.refused.items())[:3]:
        one = tmp_path / "refused.safetensors"
        save_file({name: weight}, one)
        error = convert(one, layout, absent, code=1)
        assert error.count("\n") == 1 and name in error and "too large" in error
        assert not absent.exists()


def test_the_golden_file_is_what_the_packages_make():
    """A sample of its lines: all of them would take minutes."""
    lines = golden.GOLDEN.read_text().splitlines()
    known = {tuple(line.split()[:3]): line for line in lines}
    for layout in golden.LAYOUTS:
        for index in (1, 11, 22):
            dtype = list(hard.TYPES)[index % 3]
            if layout in ("gguf:q4_1", "gguf:q5_1") and not packages.ZEROS_AS_OURS:
                continue
            assert golden.line_of(layout, dtype, index) == known.get((layout, dtype, str(index)))
    assert list(golden.k_lines()) == lines[-20:]
