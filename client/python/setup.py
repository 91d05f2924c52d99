"""Build step: compiles the contract's .proto files to one descriptor set, quantd/contract.binpb.

Descriptors instead of generated modules: generated Python code refuses to load if the major version of the protobuf runtime is too
far from the compiler's; descriptors load in all of them. Nothing generated is committed.

The .proto files come from QUANTD_PROTO_DIR, from proto/ beside this file (as in an sdist), or from the repository.
"""

import os
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
CONTRACT = (
    "quantd/v1/tensor.proto",
    "quantd/v1/quantization.proto",
    "google/rpc/status.proto",
    "google/rpc/error_details.proto",
    "grpc/health/v1/health.proto",
)


def proto_root() -> Path:
    candidates = [HERE / "proto", HERE.parent.parent / "proto"]
    if "QUANTD_PROTO_DIR" in os.environ:
        candidates.insert(0, Path(os.environ["QUANTD_PROTO_DIR"]))
    for root in candidates:
        if all((root / name).is_file() for name in CONTRACT):
            return root
    raise SystemExit(
        "quantd's .proto files are not at any of: "
        + ", ".join(map(str, candidates))
        + "; install from a clone of the repository, or set QUANTD_PROTO_DIR to its proto/ folder"
    )


def compile_descriptors(target: Path) -> None:
    import grpc_tools
    from grpc_tools import protoc

    target.parent.mkdir(parents=True, exist_ok=True)
    arguments = [
        "protoc",
        f"-I{proto_root()}",
        f"-I{Path(grpc_tools.__file__).parent / '_proto'}",
        "--include_imports",
        f"--descriptor_set_out={target}",
        *CONTRACT,
    ]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed: " + " ".join(arguments))


class BuildPy(build_py):
    def run(self):
        super().run()
        editable = getattr(self, "editable_mode", False)
        root = HERE / "src" if editable else Path(self.build_lib)
        compile_descriptors(root / "quantd" / "contract.binpb")


class Sdist(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in CONTRACT:
            copy = Path(base_dir) / "proto" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(proto_root() / name, copy)


def core() -> str:
    """quantd-core: from the clone that contains this folder, else from the index."""
    beside = HERE.parent / "python-core"
    return f"quantd-core @ {beside.as_uri()}" if (beside / "pyproject.toml").is_file() else "quantd-core"


setup(
    cmdclass={"build_py": BuildPy, "sdist": Sdist},
    extras_require={"local": [core()], "test": ["pytest"], "onnxruntime": ["onnx", "onnxruntime>=1.31"]},
)
