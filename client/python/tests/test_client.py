"""The client against a server: errors, time, threads, streams. That arguments arrive and results come back: tests/conformance."""

import concurrent.futures
import socket
import subprocess
import sys
from pathlib import Path

import grpc
import numpy as np
import pytest

import quantd
import slow_server
from quantd import messages
from raw_server import RawServer

X = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 300.0]], np.float32)


def test_negative_values_that_become_zero_are_a_warning(client):
    with pytest.warns(UserWarning, match="negative"):
        client.dynamic_quantize(np.float32([-1, 2]), symmetry="symmetric")


def test_errors_carry_code_message_and_fields():
    def any_of(message):
        return {"type_url": f"type.googleapis.com/{message.DESCRIPTOR.full_name}", "value": message.SerializeToString()}

    def refuse(_, context):
        details = messages.Status(code=3, message="scale has 2 elements", details=map(any_of, (
            messages.BadRequest(field_violations=[{"field": "scale", "description": "scale has 2 elements"}]),
            messages.ErrorInfo(reason="BAD_REQUEST", domain="quantd", metadata={"rule": "numerics"}),
            messages.RetryInfo(retry_delay={"seconds": 1, "nanos": 500000000}))))
        context.set_trailing_metadata([("grpc-status-details-bin", details.SerializeToString())])
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, details.message)

    with RawServer(Quantize=refuse) as server, quantd.Client(server.address) as client:
        with pytest.raises(quantd.InvalidArgumentError) as caught:
            client.quantize(X, np.ones(2, np.float32))
    error = caught.value
    assert isinstance(error, quantd.QuantdError) and isinstance(error, ValueError)
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "2 elements" in error.message and "INVALID_ARGUMENT" in str(error)
    assert error.field == "scale"
    assert error.field_violations == (quantd.FieldViolation("scale", error.message),)
    assert (error.reason, error.metadata, error.retry_after) == ("BAD_REQUEST", {"rule": "numerics"}, 1.5)


def test_timeout():
    with slow_server.start() as server, quantd.Client(server.address) as client:
        with pytest.raises(quantd.DeadlineExceededError) as caught:
            client.dynamic_quantize(X[0], timeout=0.2)
        assert isinstance(caught.value, TimeoutError)
        assert client.quantize(X[0], 1.0).y.tolist() == [1, 1, 1]


def test_nobody_there():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        with quantd.Client(f"127.0.0.1:{s.getsockname()[1]}", timeout=5) as client:
            with pytest.raises(quantd.UnavailableError) as caught:
                client.info()
    assert isinstance(caught.value, ConnectionError) and caught.value.field is None


def test_info_and_health(client):
    info = client.info()
    assert info.version and info.target in info.supported_targets and info.max_message_bytes == 1 << 27
    assert client.health() == "SERVING"
    with pytest.raises(quantd.QuantdError) as caught:
        client.health("no.such.Service")
    assert caught.value.code is grpc.StatusCode.NOT_FOUND


def test_one_client_serves_many_threads(client):
    def work(i):
        return client.quantize(np.full(100, i, np.float32), 1.0).y

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i, y in enumerate(pool.map(work, range(64))):
            assert (y == i).all()


def test_stream(client):
    with client.stream(max_in_flight=4) as stream:
        quantized = [stream.quantize(np.full(8, i, np.float32), 1.0) for i in range(50)]
        back = stream.dequantize(np.uint8([1, 2]), 2.0)
        dynamic = stream.dynamic_quantize(X, axis=0)
        assert all((f.result(30).y == i).all() for i, f in enumerate(quantized))
    assert back.result(0).y.tolist() == [2, 4]
    assert dynamic.result(0).scale.shape == (2,)


def test_a_closed_stream_takes_no_more(client):
    stream = client.stream()
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        stream.quantize(X, 1.0)


def test_a_broken_stream_fails_what_is_open():
    with slow_server.start() as server, quantd.Client(server.address) as client, client.stream(timeout=0.3, max_in_flight=1) as stream:
        slow = stream.dynamic_quantize(X)
        with pytest.raises(quantd.DeadlineExceededError):
            for _ in range(3):  # waits for the permit, then learns that the stream has ended
                stream.quantize(X, 1.0)
        with pytest.raises(quantd.DeadlineExceededError):
            slow.result(5)


def test_the_example_runs(address):
    example = Path(__file__).resolve().parents[1] / "examples" / "quantize_weights.py"
    run = subprocess.run([sys.executable, example, "--address", address], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "NVFP4" in run.stdout and "a wrong scale: scale: " in run.stdout
