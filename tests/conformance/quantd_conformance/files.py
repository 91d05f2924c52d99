"""The kit as files: written from cases, and read again. FORMAT.md documents all of them."""

import hashlib
import io
import itertools
import json
import lzma
import tarfile
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from quantd import __version__
from quantd.safetensors import Reader, header_of
from quantd.types import DataType, pack, unpack

from . import onnx_model
from . import oracle_types as ot
from .case import OPERATORS, Answer, Case, Tensors
from .onnx_model import FormatError
from .rules import RULES

SCHEMA = 1
LICENSE = "Apache-2.0"
# Types that all readers of .safetensors support; elements of other types are stored as bytes.
DTYPES = {
    "FLOAT": "F32",
    "FLOAT16": "F16",
    "BFLOAT16": "BF16",
    "UINT8": "U8",
    "INT8": "I8",
    "UINT16": "U16",
    "INT16": "I16",
    "INT32": "I32",
}


def bytes_of(array: np.ndarray) -> bytes:
    """The bytes in a file: little endian, small types packed."""
    return pack(array)


def array_of(raw: Any, kind: str, shape: Sequence[int]) -> np.ndarray:
    """The reverse of bytes_of. kind: ONNX's name of the type."""
    return unpack(raw, DataType[kind], shape)


@dataclass
class Stored(Case):
    """A case that was read: with the answer from its file instead of the oracle's. inputs_in_order: ONNX's, by the model's names."""

    wanted: Answer = field(default_factory=Answer)
    model: Optional[bytes] = None
    inputs_in_order: Dict[str, np.ndarray] = field(default_factory=dict)
    sentence: str = ""

    def expected(self) -> Answer:
        return self.wanted


# ---------------------------------------------------------------- writing


class Folder:
    """The destination of files: a new folder."""

    def __init__(self, path: Path) -> None:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise FileExistsError(17, "exists already, and is not an empty folder", str(path))
        self._path, self._made = path, set()

    def add(self, name: str, data: bytes) -> None:
        target = self._path / name
        if target.parent not in self._made:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(target.parent)
        target.write_bytes(data)

    def close(self) -> None:
        pass


class Archive:
    """A .tar.xz that depends only on the contents of the files: no times, no owners."""

    def __init__(self, path: Path) -> None:
        self._root = path.name[: -len(".tar.xz")]
        self._file = open(path, "xb")
        self._packer = lzma.LZMAFile(self._file, "wb", preset=6, check=lzma.CHECK_SHA256)
        self._tar = tarfile.open(fileobj=self._packer, mode="w", format=tarfile.USTAR_FORMAT)

    def add(self, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(f"{self._root}/{name}")
        info.size, info.mode = len(data), 0o644
        self._tar.addfile(info, io.BytesIO(data))

    def close(self) -> None:
        self._tar.close()
        self._packer.close()
        self._file.close()


def write(path: Path, cases: Iterable[Case]) -> Dict[str, Any]:
    """Writes a folder, or an archive if the name ends in .tar.xz; returns the manifest."""
    sink = Archive(path) if path.name.endswith(".tar.xz") else Folder(path)
    digest, counts, groups = hashlib.sha256(), {"rules": {}, "operators": {}, "families": {}}, {}

    def add(name: str, data: bytes) -> None:
        digest.update(f"{name}\0{len(data)}\0".encode() + hashlib.sha256(data).digest())
        sink.add(name, data)

    for case in cases:
        wanted = case.expected()
        for kind, key in (
            ("rules", case.rule),
            ("operators", f"{case.operator} {case.opset}" if case.opset else case.operation),
            ("families", case.family),
        ):
            counts[kind][key] = counts[kind].get(key, 0) + 1
        if case.opset:
            _write_onnx(add, case, wanted)
        else:
            groups.setdefault((case.family, case.group), Group()).add(case, wanted)
    for (family, group), contents in groups.items():
        contents.write(add, family, group)
    add("FORMAT.md", (resources.files(__package__) / "FORMAT.md").read_bytes())
    add("LICENSE", (resources.files(__package__) / "LICENSE").read_bytes())
    manifest = {
        "schema": SCHEMA,
        "name": "quantd-conformance",
        "version": __version__,
        "license": LICENSE,
        "cases": sum(counts["families"].values()),
        **counts,
        "digest": digest.hexdigest(),
    }
    sink.add("manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
    sink.close()
    return manifest


def rule_text(case: Case) -> str:
    rule = RULES[case.rule]
    lines = [
        f"rule: {rule.name}",
        f"operator: {case.operator}, version {case.opset}",
        f"source: {rule.source}" + (f", version {case.opset}" if rule.source == case.operator else ""),
        f"sentence: {rule.sentence(case.opset)}",
    ]
    if case.open:
        lines += [
            f"open: {rule.open}",
            *(f"answer: {name}" + (" (refused)" if found.refused is not None else "") for name, found in case.answers.items()),
        ]
    return "\n".join(lines) + "\n"


def _write_onnx(add: Any, case: Case, wanted: Answer) -> None:
    folder = f"{case.family}/{case.name}"
    shown = wanted if wanted.tensors else next(a for a in case.answers.values() if a.tensors)
    add(f"{folder}/model.onnx", onnx_model.model_bytes(case, shown.tensors))
    add(f"{folder}/rule.txt", rule_text(case).encode())
    names = [(onnx_name, name) for onnx_name, name in onnx_model.INPUTS[case.operation] if name in case.inputs]
    for i, (onnx_name, name) in enumerate(names):
        add(f"{folder}/test_data_set_0/input_{i}.pb", onnx_model.tensor_bytes(onnx_name, case.inputs[name]))
    for i, name in enumerate(onnx_model.OUTPUTS[case.operation]):
        add(f"{folder}/test_data_set_0/output_{i}.pb", onnx_model.tensor_bytes(name, shown.tensors[name]))
    for answer_name, found in case.answers.items():
        if found.refused is not None:
            add(f"{folder}/answers/{answer_name}/refused.txt", b"An error is the answer.\n")
        for i, name in enumerate(onnx_model.OUTPUTS[case.operation] if found.tensors else ()):
            add(f"{folder}/answers/{answer_name}/output_{i}.pb", onnx_model.tensor_bytes(name, found.tensors[name]))


class Group:
    """A .json and its .safetensors. Tensors with equal contents are stored once."""

    def __init__(self) -> None:
        self._names: Dict[Tuple[str, Tuple[int, ...], bytes], str] = {}
        self._cases: List[Dict[str, Any]] = []

    def _name(self, array: np.ndarray) -> str:
        key = (ot.of(array).name, array.shape, bytes_of(array))
        return self._names.setdefault(key, f"t{len(self._names)}")

    def add(self, case: Case, wanted: Answer) -> None:
        entry: Dict[str, Any] = {"name": case.name, "rule": case.rule, "operation": case.operation}
        if case.attributes:
            entry["attributes"] = case.attributes
        entry["inputs"] = {name: self._name(array) for name, array in case.inputs.items()}
        if wanted.refused is not None:
            entry["refused"] = wanted.refused
        else:
            entry["outputs"] = {name: self._name(array) for name, array in wanted.tensors.items()}
        if wanted.report is not None:
            entry["report"] = wanted.report
        self._cases.append(entry)

    def write(self, add: Any, family: str, group: str) -> None:
        tensors, stored = {}, {}
        for (kind, shape, data), name in self._names.items():
            tensors[name] = {"type": kind, "shape": list(shape)}
            whole = kind in DTYPES
            stored[name] = (DTYPES[kind] if whole else "U8", shape if whole else (len(data),), np.frombuffer(data, np.uint8))
        rules = {c["rule"]: {"source": RULES[c["rule"]].source, "sentence": RULES[c["rule"]].sentence()} for c in self._cases}
        document = {"schema": SCHEMA, "family": family, "group": group, "rules": rules, "tensors": tensors, "cases": self._cases}
        # One line per case and tensor: readable, and a diff shows what has changed.
        head = json.dumps({k: v for k, v in document.items() if k not in ("tensors", "cases")}, indent=1)[:-2]
        lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in tensors.items())
        each = ",\n".join(f"  {json.dumps(c)}" for c in self._cases)
        add(f"other/{family}/{group}.json", f'{head},\n "tensors": {{\n{lines}\n }},\n "cases": [\n{each}\n ]\n}}\n'.encode())
        data = b"".join(raw.tobytes() for _, _, raw in stored.values())
        add(f"other/{family}/{group}.safetensors", header_of(stored, {}) + data)


# ---------------------------------------------------------------- reading


def read(folder: Path) -> Iterator[Stored]:
    """All cases of a kit, ONNX's first; or of any other folder of ONNX's backend tests."""
    models = sorted(p.parent for p in folder.rglob("model.onnx"))
    documents = sorted(folder.glob("other/*/*.json"))
    if not models and not documents:
        raise FormatError(f"{folder} holds no case: neither */model.onnx nor other/*/*.json")
    manifest, found = folder / "manifest.json", 0
    promised = _json(manifest).get("cases") if manifest.exists() else None
    if manifest.exists() and not isinstance(promised, int):
        raise FormatError(f"{manifest}: cases is {promised!r}, must be how many there are")
    for case in itertools.chain.from_iterable(itertools.chain(map(_read_onnx, models), map(_read_group, documents))):
        found += 1
        yield case
    if promised not in (None, found):
        raise FormatError(f"{folder} is incomplete: it has {found} cases, manifest.json lists {promised}")


# The errors that arbitrary files can cause.
WRONG = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, OSError)


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, (ValueError, OSError)) else f"{type(error).__name__}: {error}"


def _json(path: Path) -> Dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise FormatError(f"{path}: schema is {found.get('schema') if isinstance(found, dict) else None}, {SCHEMA} is known here")
    return found


def _tensors(folder: Path, kind: str) -> List[Tuple[str, np.ndarray]]:
    """input_0.pb and so on, or output_0.pb."""
    found = []
    for i in range(sum(1 for _ in folder.glob(f"{kind}_*.pb"))):
        path = folder / f"{kind}_{i}.pb"
        try:
            found.append(onnx_model.tensor_of(path.read_bytes()))
        except FormatError as error:
            raise FormatError(f"{path.name}: {error}") from None
    return found


def _outputs(folder: Path, names: List[str]) -> Tensors:
    found = _tensors(folder, "output")
    if len(found) != len(names):
        raise FormatError(f"{folder.name} has {len(found)} outputs, the model {len(names)}")
    return {name: array for name, (_, array) in zip(names, found)}


def _read_onnx(folder: Path) -> Iterator[Stored]:
    try:
        model = (folder / "model.onnx").read_bytes()
        operation, opset, attributes, input_names, outputs = onnx_model.read_model(model)
        names = [name for name, _ in zip(onnx_model.OUTPUTS[operation], outputs)]
        text = folder / "rule.txt"
        lines = [line.partition(": ")[::2] for line in text.read_text().splitlines()] if text.exists() else []
        rule, answers = dict(lines), {}
        for kept in [folder / "answers" / v.split()[0] for k, v in lines if k == "answer"]:
            answers[kept.name] = Answer(refused="") if (kept / "refused.txt").exists() else Answer(_outputs(kept, names))
        for data in sorted(folder.glob("test_data_set_*")):
            given = _tensors(data, "input")
            present = [name for name in input_names if name]
            if len(given) != len(present):
                raise FormatError(f"{data.name} has {len(given)} inputs, the model {len(present)}")
            what = "" if data.name == "test_data_set_0" else data.name[len("test_data_set") :]
            yield Stored(
                folder.name + what,
                rule.get("rule", OPERATORS[operation]),
                operation,
                {k: v for k, (_, v) in zip(present, given)},
                attributes,
                "open" if answers else folder.parent.name,
                opset,
                "",
                answers,
                Answer(_outputs(data, names)),
                model,
                dict(given),
                rule.get("sentence", ""),
            )
    except WRONG as error:
        raise FormatError(f"{folder}: {_words(error)}") from None


def _read_group(path: Path) -> Iterator[Stored]:
    document = _json(path)
    try:
        with open(path.with_suffix(".safetensors"), "rb") as file:
            reader = Reader(file)
            arrays = {
                name: array_of(reader.read(name), what["type"], tuple(what["shape"])) for name, what in document["tensors"].items()
            }
        for c in document["cases"]:
            outputs = {} if "refused" in c else c["outputs"]
            wanted = Answer({k: arrays[v] for k, v in outputs.items()}, c.get("refused"), c.get("report"))
            yield Stored(
                c["name"],
                c["rule"],
                c["operation"],
                {k: arrays[v] for k, v in c["inputs"].items()},
                c.get("attributes", {}),
                document["family"],
                0,
                document["group"],
                {},
                wanted,
                None,
                {},
                document["rules"][c["rule"]]["sentence"],
            )
    except WRONG as error:
        raise FormatError(f"{path}: {_words(error)}") from None


def unpacked(archive: Path, folder: Path) -> Path:
    """The folder of an archive, unpacked under `folder`. Only regular files with plain paths are accepted."""
    try:
        with tarfile.open(archive, "r:xz") as tar:
            for member in tar:
                parts = Path(member.name).parts
                if not member.isfile() or ".." in parts or Path(member.name).is_absolute():
                    raise FormatError(f"{archive}: {member.name} is not a plain file below its folder")
                target = folder.joinpath(*parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tar.extractfile(member).read())
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise FormatError(f"{archive}: {error}") from None
    found = [p for p in folder.iterdir() if p.is_dir()]
    if len(found) != 1:
        raise FormatError(f"{archive}: {len(found)} folders, must be one")
    return found[0]


def stored(case: Case) -> Stored:
    """A case as if it had been written and read, which engines for ONNX's operators need."""
    wanted = case.expected()
    shown = wanted if wanted.tensors else next((a for a in case.answers.values() if a.tensors), wanted)
    named = {onnx_name: case.inputs[name] for onnx_name, name in onnx_model.INPUTS.get(case.operation, ()) if name in case.inputs}
    return Stored(
        case.name,
        case.rule,
        case.operation,
        case.inputs,
        case.attributes,
        case.family,
        case.opset,
        case.group,
        case.answers,
        shown,
        onnx_model.model_bytes(case, shown.tensors) if case.opset and shown.tensors else None,
        named,
        RULES[case.rule].sentence(case.opset),
    )
