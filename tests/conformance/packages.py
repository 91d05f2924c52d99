"""Codes made by the packages themselves, each through its public interface. A package that is not installed is None."""

import importlib
import importlib.util
import sys
import types
from pathlib import Path

import numpy as np


def find(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def sentence_transformers():
    """Only the module util.quantization: the package imports torch, which quantize_embeddings does not need."""
    spec = importlib.util.find_spec("sentence_transformers")
    if spec is None:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "util"
    added = {}
    if find("torch") is None:
        added["torch"] = types.ModuleType("torch")
        added["torch"].Tensor = type("Tensor", (), {})
    package = types.ModuleType("quantd_tests_st")
    package.__path__ = [str(folder)]
    tensor = types.ModuleType("quantd_tests_st.tensor")
    tensor._tensor_to_numpy = None  # for tensors only
    added.update({"quantd_tests_st": package, "quantd_tests_st.tensor": tensor})
    sys.modules.update(added)
    try:
        spec = importlib.util.spec_from_file_location("quantd_tests_st.quantization", folder / "quantization.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for name in added:
            del sys.modules[name]
    return module


class SqliteVec:
    def __init__(self):
        sqlite_vec = importlib.import_module("sqlite_vec")
        # Not sqlite3, which some builds of Python have without extensions.
        self.db = importlib.import_module("apsw").Connection(":memory:")
        self.db.enable_load_extension(True)
        self.db.load_extension(sqlite_vec.loadable_path())

    def rows(self, function, x, dtype):
        rows = [self.db.execute(f"select {function}", (row.tobytes(),)).fetchone()[0] for row in x]
        return np.stack([np.frombuffer(row, dtype) for row in rows])

    def int8(self, x):
        return self.rows("vec_quantize_int8(?, 'unit')", x, np.int8)

    def binary(self, x):
        return self.rows("vec_quantize_binary(?)", x, np.uint8)


def usearch_i8(x):
    index_module = importlib.import_module("usearch.index")
    index = index_module.Index(ndim=x.shape[1], metric="cos", dtype="i8")
    index.add(np.arange(len(x)), x)
    return np.asarray(index.get(np.arange(len(x)), dtype="i8")).reshape(x.shape).view(np.int8)


def pgvector_bits(x):
    bit = importlib.import_module("pgvector").Bit
    # Its binary form: a length of four bytes, then what the server stores.
    return np.stack([np.frombuffer(bit((row > 0).tolist()).to_binary()[4:], np.uint8) for row in x])
