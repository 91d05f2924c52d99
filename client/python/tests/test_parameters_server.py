"""Stored parameters with the real server: references, files and errors equal those of quantd.local(); replicas; large tensors."""

import hashlib
import time

import ml_dtypes
import numpy as np
import pytest

import quantd
import raw_server
from test_parameters import SCALE, ZERO, X, names, same


def real_server(*flags):
    if not raw_server.BINARY.exists():
        pytest.skip(f"{raw_server.BINARY} is not built")
    return raw_server.Quantd(*flags)


def test_references_of_local_are_the_servers(real, folder):
    """The same bytes: either one can use what the other has stored. A file's contents match its name."""
    pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")
    rng = np.random.default_rng(8)
    with quantd.local() as local:
        for arguments in (
            dict(scale=1.0), dict(scale=SCALE, zero_point=ZERO, axis=-1, output_type="int8", precision="float16"),
            dict(scale=np.ones((6, 4), ml_dtypes.bfloat16), block_size=4, output_type="float8_e4m3fn", saturate=False),
            dict(scale=np.ones((2, 2), np.float16), block_shape=[-1, 300], zero_point=np.ones((2, 2), ml_dtypes.int4)),
            dict(scale=np.ones(5, np.float32), zero_point=rng.integers(-2, 2, 5).astype(np.int8).view(ml_dtypes.int2)),
            dict(zero_point=np.zeros((), np.uint16), zero_point_order="before_rounding"), dict(axis=0, output_type="int4"),
            dict(preset="vespa"), dict(preset="sentence-transformers-uint8", ranges=np.float32([[0] * 300, [1] * 300]), dimensions=300),
            dict(recipe="unit", normalize=True, non_finite="ignore"), dict(recipe="bits", bit_threshold="greater_or_equal")):
            theirs, ours = real.put_parameters("same", **arguments), local.put_parameters("same", **arguments)
            assert theirs.reference == ours.reference and theirs.data == ours.data, arguments
            got = real.get_parameters(theirs.reference)
            assert got == theirs and got.arguments.keys() == ours.arguments.keys()
            file = folder / f"same@{theirs.reference.partition(':')[2]}.quantd"
            assert hashlib.sha256(file.read_bytes()).hexdigest() == theirs.reference.partition(":")[2]
            assert file.read_bytes() == ours.data


def test_errors_of_local_are_the_servers(real):
    pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")
    with quantd.local() as local:
        found = []
        for keeper in (real, local):
            stored, other = keeper.put_parameters("errors", scale=SCALE, axis=1), keeper.put_parameters("other", recipe="bits")
            keeper.put_parameters("twice", scale=1.0)
            keeper.put_parameters("twice", scale=2.0)
            errors = []
            for call in (
                lambda: keeper.quantize(X, 1.0, parameters=stored), lambda: keeper.quantize(X, axis=1, parameters=stored),
                lambda: keeper.dequantize(X.astype(np.int8), 1.0, parameters=stored), lambda: keeper.quantize(X, parameters=other),
                lambda: keeper.dequantize(X.astype(np.int8), parameters=other), lambda: keeper.quantize_embeddings(X, parameters=stored),
                lambda: keeper.quantize(X, parameters="twice"), lambda: keeper.quantize(X, parameters="A b"),
                lambda: keeper.quantize(X, parameters="none"), lambda: keeper.quantize(X, parameters="none@sha256:" + "1" * 64),
                lambda: keeper.quantize(X, parameters="none@sha256:" + "A" * 64), lambda: keeper.get_parameters("twice"),
                lambda: keeper.get_parameters("none"), lambda: keeper.get_parameters("None"), lambda: keeper.put_parameters("A b", scale=1.0),
                lambda: keeper.put_parameters("a" * 65, scale=1.0)):
                with pytest.raises(quantd.QuantdError) as caught:
                    call()
                message = caught.value.message.partition(" several sets have: ")[0]  # the order of the folder decides which two are named
                errors.append((caught.value.code, message, caught.value.field))
            found.append(errors)
    assert found[0] == found[1]


def test_replicas_that_share_nothing(tmp_path):
    """Two servers behind one address, with separate folders: the object is put wherever it is missing."""
    servers = []
    try:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            servers.append(real_server(f"--parameters_dir={tmp_path / name}"))
        where = "ipv4:" + ",".join(server.address for server in servers)
        with quantd.Client(servers[0].address, timeout=30) as first:
            stored = first.put_parameters("shared", scale=SCALE, axis=1)
        with quantd.Client(where, timeout=30) as client:
            # Calls go to servers that are connected; in the end to both.
            deadline = time.monotonic() + 30
            while not list((tmp_path / "b").iterdir()) and time.monotonic() < deadline:
                assert client.quantize(X, parameters=stored).parameters == stored.reference
            with client.stream() as stream:
                futures = [stream.quantize(X, parameters=stored) for _ in range(20)]
            assert {future.result().parameters for future in futures} == {stored.reference}
        assert len(list((tmp_path / "b").iterdir())) == 1
    finally:
        for server in servers:
            server.stop()


def test_large_tensors_of_the_real_server(real):
    """In pieces, the bytes of one call with all arguments."""
    x = np.random.default_rng(2).standard_normal((900, 1000)).astype(np.float32)
    scale = np.random.default_rng(4).uniform(0.01, 0.1, 1000).astype(np.float32)
    name = next(names)
    stored = real.put_parameters(name, scale=scale, axis=1, output_type="int8")
    wanted = real.quantize(x, scale, axis=1, output_type="int8")
    for given in (stored, stored.reference, name):
        found = real.quantize(x, parameters=given, report_error=True)
        same(found, wanted, stored.reference)
        assert found.error.max_absolute_error > 0 and found.scale is None
        same(found.dequantize(), wanted.dequantize(), stored.reference)
    with pytest.raises(quantd.InvalidArgumentError, match="axis is in the request and in"):
        real.quantize(x, axis=1, parameters=stored)
    e = real.put_parameters(next(names), recipe="bits", dimensions=333)
    same(real.quantize_embeddings(x, parameters=e), real.quantize_embeddings(x, recipe="bits", dimensions=333), e.reference)
