"""The dependencies: the client is taken from the clone that contains this folder, else from the index."""

from pathlib import Path

from setuptools import setup

CLIENT = Path(__file__).resolve().parents[2] / "client" / "python"
quantd = f"quantd @ {CLIENT.as_uri()}" if (CLIENT / "pyproject.toml").is_file() else "quantd"
local = f"quantd[local] @ {CLIENT.as_uri()}" if (CLIENT / "pyproject.toml").is_file() else "quantd[local]"

setup(
    install_requires=[quantd, "ml_dtypes>=0.5", "numpy>=1.23", "onnx>=1.23"],
    extras_require={"local": [local], "onnxruntime": ["onnxruntime>=1.31"], "openvino": ["openvino>=2026"]},
)
