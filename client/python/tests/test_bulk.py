"""The examples for Ray Data and Dask: both give the codes of the engine. ./tests/run.sh bulk runs them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import quantd
import quantd.checkpoints

for package in ("dask", "ray", "pyarrow", "quantd_core"):
    pytest.importorskip(package, reason=f"{package} is not installed: ./tests/run.sh bulk has it")
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
X = np.random.default_rng(2).uniform(-1, 1, (4000, 64)).astype(np.float32)
# On loopback, without what only a cluster needs; then the unchanged example.
RAY = """
import runpy, sys, ray
ray.init(num_cpus=2, include_dashboard=False, object_store_memory=128 << 20, _node_ip_address="127.0.0.1", _temp_dir=sys.argv.pop(1))
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
ray.shutdown()
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embeddings")
    for i in range(4):
        rows = np.arange(i * 1000, (i + 1) * 1000)
        column = pa.FixedSizeListArray.from_arrays(pa.array(X[rows].reshape(-1)), X.shape[1])
        pq.write_table(pa.table({"id": rows, "embedding": column}), folder / f"{i}.parquet", row_group_size=300)
    return folder


def codes(folder):
    """The column of codes from all files, ordered by the rows' numbers."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]).sort_by("id")
    assert table["id"].to_pylist() == list(range(len(X)))
    return np.array(table["embedding"].to_pylist()), table["embedding"].type


def run(*command, **more):
    environment = dict(os.environ, RAY_USAGE_STATS_ENABLED="0", **more)
    found = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=240, env=environment)
    assert found.returncode == 0, found.stderr[-3000:]


def test_ray_dask_and_the_engine_agree(source, tmp_path):
    wanted = quantd.local(1).quantize_embeddings(X, preset="usearch-i8").y
    run(EXAMPLES / "dask_embeddings.py", source, tmp_path / "dask", "--preset=usearch-i8")
    short = tempfile.mkdtemp(prefix="ray")  # Ray's sockets have long names, and the system limits their length
    try:
        run("-c", RAY, short, EXAMPLES / "ray_data.py", source, tmp_path / "ray", "--preset=usearch-i8")
    finally:
        shutil.rmtree(short, ignore_errors=True)
    by_dask, by_ray = codes(tmp_path / "dask"), codes(tmp_path / "ray")
    for found, kind in (by_dask, by_ray):
        assert kind == pa.list_(pa.int8(), 64)
        assert found.astype(np.int8).tobytes() == wanted.tobytes()


def test_ray_converts_a_model_a_shard_a_task(tmp_path):
    """The bytes of one process, also if q, k and v, which share a scale, are in different shards."""
    draw, folder = np.random.default_rng(4), tmp_path / "m"
    folder.mkdir()
    places = {}
    for i, name in enumerate(("q", "k", "v")):
        weight, shard = draw.standard_normal((64, 128)).astype(np.float32) * 2**i, f"model-{i + 1:05}-of-00003.safetensors"
        text = json.dumps({f"l.{name}_proj.weight": {"dtype": "F32", "shape": weight.shape, "data_offsets": [0, weight.nbytes]}}).encode()
        (folder / shard).write_bytes(len(text).to_bytes(8, "little") + text + weight.tobytes())
        places[f"l.{name}_proj.weight"] = shard
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (folder / "config.json").write_text("{}")
    layout = "compressed-tensors:nvfp4"
    quantd.checkpoints.convert(folder, tmp_path / "whole", to=layout)
    short = tempfile.mkdtemp(prefix="ray")
    try:
        run("-c", RAY, short, EXAMPLES / "ray_checkpoint.py", folder, tmp_path / "ray", f"--to={layout}")
    finally:
        shutil.rmtree(short, ignore_errors=True)
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "ray").iterdir())
    for name in names:
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.parametrize("name", ["ray_data.py", "ray_checkpoint.py", "dask_embeddings.py"])
def test_they_stay_short(name):
    assert len((EXAMPLES / name).read_text().splitlines()) < 40
