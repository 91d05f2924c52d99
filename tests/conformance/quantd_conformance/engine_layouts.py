"""Layouts of checkpoints, computed by quantd.checkpoints, which converts files: each weight is a file, and so are its parts."""

import shutil
import struct
from pathlib import Path
from typing import Dict, Iterable, List, Tuple

import numpy as np

from quantd import checkpoints, errors
from quantd.safetensors import Reader, header_of
from . import oracle_layouts_gguf as gguf
from . import oracle_types as ot
from .case import LAYOUT_OPERATIONS, Answer, Case
from .files import DTYPES, array_of, bytes_of

NAMES = {**DTYPES, "FLOAT8E4M3FN": "F8_E4M3"}
TYPES = {dtype: name for name, dtype in NAMES.items()}
FLOATS = {"FLOAT": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16"}
GGML = {  # numbers of GGML's types
    "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "q2_k": 10, "q3_k": 11, "q4_k": 12, "q5_k": 13, "q6_k": 14,
    "bf16": 30, "mxfp4": 39,
}  # fmt: skip


class Layouts:
    """An Engine for encode_layout and decode_layout only, with a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._configs: Dict[Tuple[str, str], bytes] = {}
        self._prepared: Dict[int, Answer] = {}  # by the id of the case

    def prepare(self, cases: Iterable[Case]) -> None:
        """Computes many answers at once: all cases of a layout and type that are not refused are in one file."""
        alike: Dict[Tuple[str, ...], List[Case]] = {}
        for case in cases:
            if case.operation in LAYOUT_OPERATIONS and case.expected().refused is None:
                words = (case.attributes.get("layout"), case.attributes.get("output_type"), _type_of_config(case))
                alike.setdefault((case.operation, *map(str, words)), []).append(case)
        for some in alike.values():
            try:
                found = self._convert(some)
            except Exception:  # then one at a time, where each reports its own error
                continue
            self._prepared.update((id(case), answer) for case, answer in zip(some, found))

    def __call__(self, case: Case) -> Answer:
        found = self._prepared.pop(id(case), None)
        if found is not None:
            return found
        try:
            return self._convert([case])[0]
        except errors.InvalidArgumentError:
            return Answer(refused="x")

    def _convert(self, cases: List[Case]) -> List[Answer]:
        work = self._folder / "work"
        work.mkdir()
        try:
            return (self._encode if cases[0].operation == "encode_layout" else self._decode)(work, cases)
        finally:
            shutil.rmtree(work)

    def _encode(self, work: Path, cases: List[Case]) -> List[Answer]:
        layout = cases[0].attributes["layout"]
        _write(work / "in.safetensors", {f"{i}.weight": case.inputs["x"] for i, case in enumerate(cases)})
        out = work / ("out.gguf" if layout.startswith("gguf:") else "out.safetensors")
        checkpoints.convert(work / "in.safetensors", out, to=layout, only="weight")
        read = read_gguf(out.read_bytes(), layout) if out.suffix == ".gguf" else _read(out)
        answers = [Answer() for _ in cases]
        for name, array in read.items():
            number, _, part = name.partition(".")
            answers[int(number)].tensors[part] = array
        return answers

    def _decode(self, work: Path, cases: List[Case]) -> List[Answer]:
        layout, to = cases[0].attributes["layout"], FLOATS[cases[0].attributes["output_type"]]
        stored = {f"{i}.{name}": array for i, case in enumerate(cases) for name, array in case.inputs.items()}
        if layout.startswith("gguf:"):
            (work / "in.gguf").write_bytes(gguf_file(stored, layout))
            checkpoints.convert(work / "in.gguf", work / "out.safetensors", to=to)
            read = _read(work / "out.safetensors")
        else:
            config = self._config(work / "config", layout, _type_of_config(cases[0]))
            (work / "in").mkdir()
            (work / "in" / "config.json").write_bytes(config)
            _write(work / "in" / "model.safetensors", stored)
            checkpoints.convert(work / "in", work / "out", to=to)
            read = _read(work / "out" / "model.safetensors")
        return [Answer({"y": read[f"{i}.weight"]}) for i in range(len(cases))]

    def _config(self, work: Path, layout: str, type_name: str) -> bytes:
        """Identifies a model's layout: config.json, as it is written with a weight of zeros."""
        if (layout, type_name) not in self._configs:
            (work / "in").mkdir(parents=True)
            (work / "in" / "config.json").write_text("{}")
            _write(work / "in" / "model.safetensors", {"0.weight": np.zeros((1, 128), ot.TYPES[type_name].dtype)})
            checkpoints.convert(work / "in", work / "out", to=layout)
            self._configs[layout, type_name] = (work / "out" / "config.json").read_bytes()
        return self._configs[layout, type_name]


def _type_of_config(case: Case) -> str:
    """The weight's type, if its parts say it and it matters."""
    scale = case.inputs.get("weight_scale")
    return ot.of(scale).name if scale is not None and ot.of(scale) in ot.FLOATS else "BFLOAT16"


def _write(path: Path, tensors: Dict[str, np.ndarray]) -> None:
    stored = {n: (NAMES[ot.of(a).name], a.shape, np.frombuffer(bytes_of(a), np.uint8)) for n, a in tensors.items()}
    path.write_bytes(header_of(stored, {}) + b"".join(raw.tobytes() for _, _, raw in stored.values()))


def _read(path: Path) -> Dict[str, np.ndarray]:
    with open(path, "rb") as file:
        reader = Reader(file)
        return {name: array_of(reader.read(name), TYPES[entry.dtype], entry.shape) for name, entry in reader.entries.items()}


# ---------------------------------------------------------------- .gguf


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def _row(columns: int, name: str) -> int:
    """Bytes of a row."""
    if name in ("f16", "bf16"):
        return 2 * columns
    return columns // 256 * gguf.K_TYPES[name] if name in gguf.K_TYPES else columns // gguf.BLOCK * gguf.BYTES[name]


def gguf_file(tensors: Dict[str, np.ndarray], layout: str) -> bytes:
    """A file of tensors of one type."""
    name = layout[len("gguf:") :]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + _text("general.architecture") + struct.pack("<I", 8) + _text("unknown")
    data = b""
    for tensor, stored in tensors.items():
        columns = stored.shape[1] if stored.dtype != np.uint8 else stored.shape[1] * 256 // _row(256, name)
        head += _text(tensor) + struct.pack("<IQQIQ", 2, columns, stored.shape[0], GGML[name], len(data))
        data += stored.tobytes() + bytes(-stored.nbytes % 32)
    return head + bytes(-len(head) % 32) + data


def read_gguf(data: bytes, layout: str) -> Dict[str, np.ndarray]:
    """The tensors of a file that quantd wrote, all of one type, with two dimensions; keys are texts or UINT32."""
    name = layout[len("gguf:") :]

    def text(at: int) -> Tuple[str, int]:
        (length,) = struct.unpack_from("<Q", data, at)
        return data[at + 8 : at + 8 + length].decode(), at + 8 + length

    _, tensors, keys = struct.unpack_from("<IQQ", data, 4)
    at, found, places = 24, {}, {}
    for _ in range(keys):
        _, at = text(at)
        (kind,) = struct.unpack_from("<I", data, at)
        at = text(at + 4)[1] if kind == 8 else at + 8
    for _ in range(tensors):
        tensor, at = text(at)
        dimensions, columns, rows, kind, offset = struct.unpack_from("<IQQIQ", data, at)
        at += struct.calcsize("<IQQIQ")
        if (dimensions, kind) != (2, GGML[name]):
            raise ValueError(f"{tensor} has {dimensions} dimensions and GGML type {kind}, must have 2 and {GGML[name]}")
        places[tensor] = (offset, rows, columns)
    at += -at % 32
    for tensor, (offset, rows, columns) in places.items():
        raw = data[at + offset : at + offset + rows * _row(columns, name)]
        if name in ("f16", "bf16"):
            found[tensor] = array_of(raw, "FLOAT16" if name == "f16" else "BFLOAT16", (rows, columns))
        else:
            found[tensor] = array_of(raw, "UINT8", (rows, _row(columns, name)))
    return found
