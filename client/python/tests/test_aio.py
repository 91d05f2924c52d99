"""AsyncClient: the methods of Client, many calls at once, cancelled calls, broken ones."""

import asyncio
import inspect
import threading
import time

import grpc
import ml_dtypes
import numpy as np
import pytest

import quantd
from quantd import messages
from raw_server import RawServer, info

X = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 300.0]], np.float32)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def test_the_same_methods_with_the_same_arguments():
    for name, function in inspect.getmembers(quantd.Client, inspect.isfunction):
        if not name.startswith("_") and name != "stream":
            assert inspect.signature(function).parameters.keys() == inspect.signature(
                getattr(quantd.AsyncClient, name)).parameters.keys(), name
    assert inspect.signature(quantd.Client.__init__) == inspect.signature(quantd.AsyncClient.__init__)


def test_calls(address):
    async def calls():
        async with quantd.AsyncClient(address, timeout=30) as client:
            assert await client.health() == "SERVING" and (await client.info()).version
            answer = await client.quantize(X, 0.5, 10, report_error=True)
            assert answer.y.tolist() == [[8, 10, 11], [12, 14, 255]] and answer.error.saturated_elements == 1
            found = await client.dynamic_quantize(X.astype(ml_dtypes.bfloat16), axis=0, output_type="int4")
            back = await found.dequantize()
            assert back.y.dtype == ml_dtypes.bfloat16
            assert (await client.dequantize(found)).y.tolist() == back.y.tolist()
            with pytest.raises(quantd.InvalidArgumentError) as caught:
                await client.quantize(X, np.ones(2, np.float32))
            assert caught.value.field == "scale" and caught.value.reason
            with pytest.raises(TypeError, match="float64"):
                client.quantize(X.astype(np.float64), 1.0)

    run(calls())


def test_timeouts_and_retries():
    left = [2]

    def quantize(request, context):
        if left[0]:
            left[0] -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        if left[0] is None:
            time.sleep(2)
        return messages.QuantizeResponse(y={"data_type": 2, "shape": [2, 3], "raw_data": b"abcdef"}).SerializeToString()

    async def calls():
        with RawServer(Quantize=quantize) as server:
            async with quantd.AsyncClient(server.address) as client:
                assert (await client.quantize(X, 1.0)).y.tobytes() == b"abcdef"
                assert len(server.calls) == 3
            left[0] = 1
            async with quantd.AsyncClient(server.address, retry=False) as client:
                with pytest.raises(quantd.UnavailableError):
                    await client.quantize(X, 1.0)
                left[0] = None
                with pytest.raises(quantd.DeadlineExceededError):
                    await client.quantize(X, 1.0, timeout=0.2)

    run(calls())


def test_a_cancelled_task_cancels_its_call():
    cancelled, started = threading.Event(), threading.Event()

    def slow(request, context):
        context.add_callback(cancelled.set)
        started.set()
        cancelled.wait(20)
        return b""

    async def calls():
        with RawServer(Quantize=slow) as server:
            async with quantd.AsyncClient(server.address) as client:
                task = asyncio.ensure_future(client.quantize(X, 1.0))
                await asyncio.get_running_loop().run_in_executor(None, started.wait, 20)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await asyncio.get_running_loop().run_in_executor(None, cancelled.wait, 20)

    run(calls())


def test_a_closed_client_cancels_its_calls_and_not_their_tasks():
    begun, end = threading.Semaphore(0), threading.Event()

    def slow(request, context):
        begun.release()
        end.wait(20)
        return b""

    async def calls():
        with RawServer(Quantize=slow, GetServerInfo=info()) as server:
            client = quantd.AsyncClient(server.address, retry=False)
            task = asyncio.ensure_future(client.quantize(X, 1.0))
            assert await asyncio.to_thread(begun.acquire, timeout=20)
            await client.close()
            with pytest.raises(quantd.QuantdError) as caught:
                await task
            assert caught.value.code is grpc.StatusCode.CANCELLED
            client = quantd.AsyncClient(server.address)
            task = asyncio.ensure_future(client.quantize(X, 1.0))
            assert await asyncio.to_thread(begun.acquire, timeout=20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await client.close()
            end.set()

    run(calls())
