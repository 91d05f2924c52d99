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
        if not name.startswith("_"):
            assert inspect.signature(function).parameters.keys() == inspect.signature(
                getattr(quantd.AsyncClient, name)).parameters.keys(), name
    assert inspect.signature(quantd.Client.__init__) == inspect.signature(quantd.AsyncClient.__init__)


def test_calls(address):
    async def calls():
        async with quantd.AsyncClient(address, timeout=30) as client:
            assert await client.health() == "SERVING" and (await client.info()).version == "fake"
            answer = await client.quantize(X, 0.5, 10, report_error=True)
            assert answer.y.tolist() == [[8, 10, 11], [12, 14, 255]] and answer.error.saturated_elements == 1
            found = await client.dynamic_quantize(X.astype(ml_dtypes.bfloat16), axis=0, output_type="int4")
            back = await found.dequantize()
            assert back.y.dtype == ml_dtypes.bfloat16
            assert (await client.dequantize(found)).y.tolist() == back.y.tolist()
            with pytest.raises(quantd.InvalidArgumentError) as caught:
                await client.quantize(X, np.ones(2, np.float32))
            assert caught.value.field == "scale" and caught.value.reason == "BAD_REQUEST"
            with pytest.raises(TypeError, match="float64"):
                client.quantize(X.astype(np.float64), 1.0)

    run(calls())


def test_a_thousand_calls_at_once(address):
    async def calls():
        async with quantd.AsyncClient(address) as client:
            answers = await asyncio.gather(*(client.quantize(np.full(8, i % 200, np.float32), 1.0) for i in range(1000)))
        assert all((answer.y == i % 200).all() for i, answer in enumerate(answers))

    run(calls())


def test_a_client_is_made_outside_of_a_loop(address):
    client = quantd.AsyncClient(address)

    async def call():
        assert await client.health() == "SERVING"
        await client.close()
        with pytest.raises(ValueError, match="closed"):
            await client.health()

    run(call())


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
    end = threading.Event()

    def slow(request, context):
        end.wait(20)
        return b""

    def stream(items, context):
        end.wait(20)
        yield from ()

    async def endless():
        while True:
            yield X
            await asyncio.sleep(0)

    async def calls():
        with RawServer(Quantize=slow, Calibrate=slow, Stream=stream, GetServerInfo=info()) as server:
            for call in (lambda c: c.quantize(X, 1.0), lambda c: c.calibrate(endless()), lambda c: c.stream().quantize(X, 1.0)):
                client = quantd.AsyncClient(server.address, retry=False)
                task = asyncio.ensure_future(call(client))
                await asyncio.sleep(0.3)
                await client.close()
                with pytest.raises(quantd.QuantdError) as caught:
                    await task
                assert caught.value.code is grpc.StatusCode.CANCELLED
            client = quantd.AsyncClient(server.address)
            task = asyncio.ensure_future(client.quantize(X, 1.0))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await client.close()
            end.set()

    run(calls())


def test_pieces_are_those_of_client(small):
    x = np.random.default_rng(1).standard_normal((900, 1001)).astype(np.float32)

    async def calls():
        async with quantd.AsyncClient(small.address) as client:
            for options in ({}, {"axis": 0, "output_type": "int4"}, {"output_type": "float4_e2m1fn", "block_size": 16,
                                                                     "scale_type": "float8_e4m3fn", "report_error": True}):
                ours, theirs = await client.dynamic_quantize(x, **options), small.dynamic_quantize(x, **options)
                assert ours.y.tobytes() == theirs.y.tobytes() and ours.scale.tobytes() == theirs.scale.tobytes()
                assert (await ours.dequantize()).y.tobytes() == theirs.dequantize().y.tobytes()
                if ours.error is not None:
                    assert vars(ours.error) == pytest.approx(vars(theirs.error), rel=1e-12)
            x[7, 3] = np.nan
            with pytest.raises(quantd.InvalidArgumentError, match=r"x\[7010\] is nan"):
                await client.dynamic_quantize(x, axis=0)
            many = await asyncio.gather(*(client.quantize(x, 1.0) for _ in range(8)))
            assert len({answer.y.tobytes() for answer in many}) == 1

    run(calls())


def test_a_cancelled_task_stops_its_pieces():
    served = []

    def quantize(request, context):
        served.append(1)
        time.sleep(0.05)
        count = len(messages.QuantizeRequest.FromString(request).x.raw_data) // 4
        return messages.QuantizeResponse(y={"data_type": 2, "shape": [count], "raw_data": b"\0" * count}).SerializeToString()

    async def calls():
        with RawServer(GetServerInfo=info(1 << 20), Quantize=quantize, threads=2) as server:
            async with quantd.AsyncClient(server.address) as client:
                task = asyncio.ensure_future(client.quantize(np.ones(32 << 20, np.float32), 1.0))
                while not served:
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await asyncio.sleep(0.3)
                assert len(served) < 30  # of 129

    run(calls())


def test_nonsense():
    async def calls():
        for answer in (b"\xff\xff", b"", messages.QuantizeResponse(y={"data_type": 2, "shape": [1]}).SerializeToString()):
            with RawServer(Quantize=lambda *_, answer=answer: answer) as server:
                async with quantd.AsyncClient(server.address) as client:
                    with pytest.raises(quantd.QuantdError, match="the server's answer is wrong"):
                        await client.quantize(X, 1.0)

    run(calls())


def test_streams(address):
    async def calls():
        async with quantd.AsyncClient(address) as client:
            async with client.stream(max_in_flight=4) as stream:
                tasks = [stream.quantize(np.full(8, i, np.float32), 1.0) for i in range(100)]
                bad = stream.quantize(X, np.ones(7, np.float32))
                found = stream.dynamic_quantize(X)
                with pytest.raises(quantd.InvalidArgumentError, match="7 elements"):
                    await bad
                assert (await stream.dequantize(await found)).y.shape == X.shape
                assert [(await task).y[0] for task in tasks] == list(range(100))
            with pytest.raises(ValueError, match="closed"):
                stream.quantize(X, 1.0)
            async with client.stream() as unused:
                assert unused is not None
            with pytest.raises(ValueError, match="max_in_flight"):
                client.stream(max_in_flight=0)

    run(calls())


def test_leaving_a_stream_waits_for_what_was_asked(address):
    async def calls():
        async with quantd.AsyncClient(address) as client:
            async with client.stream() as stream:
                tasks = [stream.quantize(X, 1.0) for _ in range(20)]
            assert all(task.done() and task.result().y.shape == X.shape for task in tasks)

    run(calls())


def test_streams_that_are_cancelled_or_break(address):
    async def calls():
        async with quantd.AsyncClient(address) as client:
            with pytest.raises(KeyError):
                async with client.stream() as stream:
                    task = stream.dynamic_quantize(np.full(4, 12345.0, np.float32))  # which takes seconds
                    await asyncio.sleep(0.05)
                    raise KeyError
            with pytest.raises(quantd.QuantdError, match="CANCELLED"):
                await task
            stream = client.stream()
            open_task, dropped = stream.quantize(X, 1.0), stream.quantize(X, 1.0)
            dropped.cancel()
            assert (await open_task).y.shape == X.shape
            await stream.close()

        def breaks(requests, context):
            next(requests)
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
            yield b""

        def ends(requests, context):
            next(requests)
            yield from ()

        def lies(requests, context):
            next(requests)
            yield b"\xff\xff"

        for behaviour, match in ((breaks, "UNAVAILABLE: gone"), (ends, "without an answer"), (lies, "answer is wrong")):
            with RawServer(Stream=behaviour) as server:
                async with quantd.AsyncClient(server.address) as client:
                    async with client.stream() as stream:
                        tasks = [stream.quantize(X, 1.0) for _ in range(40)]
                        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                            # grpc.aio loses the server's reason if the stream ends while an item is being written.
                            lost = "Internal error from Core"
                            assert isinstance(outcome, quantd.QuantdError) and (match in str(outcome) or lost in str(outcome))

    run(calls())
