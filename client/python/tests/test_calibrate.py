"""calibrate over the wire, with Client and AsyncClient: what is sent and when, what is retried, and exceptions of iterators."""

import asyncio
import itertools
import resource
import threading
import time

import grpc
import numpy as np
import pytest

import quantd
from quantd import messages
from quantd.types import from_message, to_message
from raw_server import RawServer, info
from test_split import bits

RNG = np.random.default_rng(5)
X = RNG.standard_normal((6, 40, 25)).astype(np.float32)
BIG = RNG.standard_normal((8, 50, 3000)).astype(np.float32)  # 4.8 MB: six pieces


def tensor(value):
    return to_message(messages.Tensor, np.asarray(value))


ANSWER = messages.CalibrateResponse(
    scale=tensor(np.float32(0.5)), zero_point=tensor(np.uint8(3)), range=tensor(np.float32([-1, 2])), elements=7, state=b"abc"
).SerializeToString()


def request(data):
    return messages.CalibrateRequest.FromString(data)


class Clients:
    """calibrate of a Client, or of an AsyncClient in its own loop."""

    def __init__(self, kind):
        self.is_async = kind == "async"

    def __call__(self, address, *arguments, client=None, **options):
        client = {"timeout": 30, **(client or {})}
        if not self.is_async:
            with quantd.Client(address, **client) as c:
                return c.calibrate(*arguments, **options)

        async def ask():
            async with quantd.AsyncClient(address, **client) as c:
                return await asyncio.wait_for(c.calibrate(*arguments, **options), 60)

        return asyncio.run(ask())


@pytest.fixture(params=["sync", "async"])
def calibrate(request):
    return Clients(request.param)


def seen_by(calibrate, *arguments, limit=1 << 20, **options):
    """The messages of a call."""
    found = []

    def answer(items, context):
        found.extend(items)
        return ANSWER

    with RawServer(GetServerInfo=info(limit), Calibrate=answer) as server:
        result = calibrate(server.address, *arguments, **options)
    return [request(data) for data in found], result


def test_what_is_sent(calibrate):
    sent, result = seen_by(
        calibrate, [X, X.astype(np.float16)], method="percentile", percentile=99, output_type="uint8", symmetry="symmetric",
        non_finite="ignore", states=[b"one", b"two"], return_state=True)
    options = messages.CalibrationOptions(
        method=2, output_type=2, symmetry=2, percentile=99, non_finite=2, return_state=True)
    assert sent[0] == messages.CalibrateRequest(options=options)
    assert [m.state for m in sent[1:3]] == [b"one", b"two"] and not any(m.HasField("options") for m in sent[1:])
    assert bits(from_message(sent[3].x)) == bits(X) and from_message(sent[4].x).dtype == np.float16 and len(sent) == 5
    assert (result.scale, result.zero_point, result.range.tolist(), result.elements) == (0.5, 3, [-1, 2], 7)
    assert result.state == b"abc" and result.method == "percentile" and result.zero_point.dtype == np.uint8
    sent, result = seen_by(calibrate, states=b"one")
    assert sent[0].options.method == 4 and len(sent) == 2 and result.state is None
    assert not sent[0].options.HasField("axis") and seen_by(calibrate, X, method=None)[0][0].options.method == 0


def test_large_arrays_go_in_pieces(calibrate):
    """Each fits into the message limit, and together they have the same values."""
    for x in (BIG, BIG[:, ::2], BIG.T):
        sent, _ = seen_by(calibrate, x)
        pieces = [from_message(m.x).reshape(-1) for m in sent[1:]]
        assert len(pieces) >= 3 and max(len(m.SerializeToString()) for m in sent) <= 1 << 20
        assert bits(np.sort(np.concatenate(pieces))) == bits(np.sort(x.reshape(-1)))


def test_pieces_have_all_of_the_axis():
    from quantd import split

    limits = split.Limits(1 << 20)
    for x in (BIG, BIG[:, ::2], BIG.T, BIG[:, :, ::-1], np.broadcast_to(np.float32(1), (300, 7, 900))):
        for axis in range(3):
            pieces = list(split.values(x, axis, limits))
            assert len(pieces) > 1 and all(p.shape[axis] == x.shape[axis] and p.nbytes < 1 << 20 for p in pieces)
            moved = [np.moveaxis(p, axis, 0).reshape(x.shape[axis], -1) for p in pieces]
            ours, wanted = np.sort(np.concatenate(moved, axis=1)), np.sort(np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1))
            assert bits(ours) == bits(wanted)
    for empty in (np.zeros((0, 3), np.float32), np.zeros((), np.float32)):
        assert [p.shape for p in split.values(empty, None, limits)] == [empty.shape]
    with pytest.raises(quantd.ResourceExhaustedError, match="the 400000 values along the axis.*--max_message_bytes"):
        list(split.values(np.zeros((2, 400_000), np.float32), 1, limits))


def counted(source, taken):
    for x in source:
        taken.append(None)
        yield x


def test_no_more_is_taken_than_is_sent(calibrate):
    """A server that does not read: the iterator waits, however long, and no memory grows."""
    taken, go_on = [], threading.Event()

    def answer(items, context):
        next(items)
        go_on.wait(30)
        return ANSWER

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with RawServer(GetServerInfo=info(1 << 22), Calibrate=answer) as server:
        thread = threading.Timer(1.0, go_on.set)
        thread.start()
        result = calibrate(server.address, counted((np.ones(1 << 18, np.float32) for _ in itertools.count()), taken))
        thread.join()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.elements == 7 and 1 <= len(taken) < 64 and grown < 200 << 10


def test_an_endless_iterator_ends_with_its_timeout(calibrate):
    def answer(items, context):
        for _ in items:
            pass
        return ANSWER

    with RawServer(GetServerInfo=info(), Calibrate=answer) as server:
        with pytest.raises(quantd.DeadlineExceededError):
            calibrate(server.address, itertools.repeat(X), timeout=0.5)
        with pytest.raises(quantd.DeadlineExceededError):
            calibrate(server.address, itertools.repeat(X), timeout=0)


class Mine(Exception):
    pass


def test_what_iterators_raise_comes_through_and_cancels(calibrate):
    begun, ended = threading.Event(), threading.Event()

    def answer(items, context):
        context.add_callback(ended.set)
        try:
            for _ in items:
                begun.set()
        except grpc.RpcError:
            assert not context.is_active()
        return ANSWER

    def broken():
        yield X
        assert begun.wait(20)
        raise Mine

    with RawServer(GetServerInfo=info(), Calibrate=answer) as server:
        with pytest.raises(Mine):
            calibrate(server.address, broken())
        assert ended.wait(20)
        for wrong in (X.astype(np.float64), object(), "x"):
            with pytest.raises(TypeError, match="^x: "):
                calibrate(server.address, [X, wrong])


def failing(times, code=grpc.StatusCode.UNAVAILABLE, read=2):
    """A server whose Calibrate fails `times` times, after reading `read` messages."""
    calls = []

    def answer(items, context):
        calls.append(None)
        if len(calls) <= times:
            for _ in itertools.islice(items, read):
                pass
            context.abort(code, "not now")
        return ANSWER if len(list(items)) else b"\xff"

    return calls, answer


@pytest.mark.parametrize("xs", [X, [X, X], (X,)], ids=["array", "list", "tuple"])
def test_what_can_be_sent_again_is(calibrate, xs):
    calls, answer = failing(2)
    with RawServer(GetServerInfo=info(), Calibrate=answer) as server:
        assert calibrate(server.address, xs).elements == 7 and len(calls) == 3
        calls.clear()
        with pytest.raises(quantd.UnavailableError, match="not now"):
            calibrate(server.address, xs, client=dict(retry=False))
        assert len(calls) == 1
    calls, answer = failing(9)
    with RawServer(GetServerInfo=info(), Calibrate=answer) as server:
        with pytest.raises(quantd.UnavailableError, match="not now"):
            calibrate(server.address, xs)
        assert len(calls) == 5


def test_an_iterator_is_not_sent_again_once_it_was_begun(calibrate):
    calls, answer = failing(1)
    with RawServer(GetServerInfo=info(), Calibrate=answer) as server:
        given = iter([X, X, X, X, X, X])
        with pytest.raises(quantd.UnavailableError, match="not now"):
            calibrate(server.address, given)
        assert len(calls) == 1


def test_an_iterator_that_was_not_begun_is(calibrate):
    calls, answer = failing(0)
    with RawServer() as unused:
        port = unused.port
    given = iter([X, X])
    made = []
    thread = threading.Timer(0.3, lambda: made.append(RawServer(port=port, GetServerInfo=info(), Calibrate=answer)))
    thread.start()
    try:
        for _ in range(20):  # restarting a listener may take longer than five attempts
            try:
                assert calibrate(f"127.0.0.1:{port}", given).elements == 7
                break
            except quantd.UnavailableError:
                time.sleep(0.1)
        assert len(calls) == 1 and not list(given)
    finally:
        thread.join()
        for server in made:
            server.stop()


def test_other_failures_are_final(calibrate):
    for code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED):
        calls, answer = failing(9, code)
        with RawServer(GetServerInfo=info(), Calibrate=answer) as server:
            with pytest.raises(quantd.QuantdError) as caught:
                calibrate(server.address, X)
            assert caught.value.code is code and len(calls) == 1


def test_a_server_whose_limit_fell_gets_smaller_pieces(calibrate):
    limits, sizes = iter([1 << 20, 1 << 18, 1 << 18]), []

    def answer(items, context):
        for data in items:
            sizes.append(len(data))
            if len(data) > 1 << 18:
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large")
        return ANSWER

    with RawServer(GetServerInfo=lambda *a: info(next(limits))(*a), Calibrate=answer) as server:
        assert calibrate(server.address, BIG).elements == 7
    assert max(sizes[-10:]) <= 1 << 18


def test_what_a_server_refused_is_said_although_its_limits_cannot_be_asked_again(calibrate):
    asked = []

    def limits(request, context):
        asked.append(1)
        return info()(request, context) if len(asked) == 1 else context.abort(grpc.StatusCode.PERMISSION_DENIED, "no more")

    _, answer = failing(9, grpc.StatusCode.RESOURCE_EXHAUSTED)
    with RawServer(GetServerInfo=limits, Calibrate=answer) as server, pytest.raises(quantd.ResourceExhaustedError):
        calibrate(server.address, X)
    assert len(asked) == 2


def test_the_reason_is_not_lost_while_messages_are_written(calibrate):
    """The status arrives while a message is being sent, which then fails: the status is raised."""
    def answer(items, context):
        next(items)
        next(items)
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "x[3] is nan")

    with RawServer(GetServerInfo=info(), Calibrate=answer) as server:
        for _ in range(20):
            with pytest.raises(quantd.InvalidArgumentError, match=r"x\[3\] is nan"):
                calibrate(server.address, itertools.repeat(X))


NONSENSE = {
    "nothing": b"",
    "no protobuf": b"\xff\xff",
    "no range": messages.CalibrateResponse(scale=tensor(np.float32(1)), zero_point=tensor(np.uint8(0))).SerializeToString(),
    "no zero point": messages.CalibrateResponse(scale=tensor(np.float32(1)), range=tensor(np.float32([0, 1]))).SerializeToString(),
    "a zero point of another type": messages.CalibrateResponse(
        scale=tensor(np.float32(1)), zero_point=tensor(np.int8(0)), range=tensor(np.float32([0, 1]))).SerializeToString(),
    "channels": messages.CalibrateResponse(
        scale=tensor(np.float32([1, 2])), zero_point=tensor(np.uint8([0, 0])), range=tensor(np.zeros((2, 2), np.float32))
    ).SerializeToString(),
    "a range of another shape": messages.CalibrateResponse(
        scale=tensor(np.float32(1)), zero_point=tensor(np.uint8(0)), range=tensor(np.float32([0, 1, 2]))).SerializeToString(),
    "a tensor of an unknown type": messages.CalibrateResponse(scale=messages.Tensor(data_type=99, raw_data=b"1")).SerializeToString(),
}


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE)
def test_nonsense(calibrate, answer):
    with RawServer(GetServerInfo=info(), Calibrate=lambda items, context: answer) as server:
        with pytest.raises(quantd.QuantdError, match="INTERNAL: the server's answer is wrong"):
            calibrate(server.address, [])


def test_arguments_that_mean_nothing(calibrate):
    for wrong, kind in ((dict(method="kl"), ValueError), (dict(xs=b"12"), TypeError), (dict(axis=1.5), TypeError),
                        (dict(states=["QDC1"]), TypeError), (dict(percentile="most"), ValueError)):
        with pytest.raises(kind):
            calibrate("127.0.0.1:1", **wrong)

    async def some():
        yield X

    with quantd.Client("127.0.0.1:1") as client, pytest.raises(TypeError, match="only AsyncClient"):
        client.calibrate(some())


def run_async(address, use):
    async def body():
        async with quantd.AsyncClient(address, timeout=30) as client:
            return await asyncio.wait_for(use(client), 60)

    return asyncio.run(body())


def test_a_failed_call_does_not_wait_for_a_slow_iterator():
    closed = []

    async def slow():
        try:
            yield X
            await asyncio.sleep(1000)
        finally:
            closed.append(True)

    def answer(items, context):
        next(items)
        next(items)
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "x[3] is nan")

    async def use(client):
        with pytest.raises(quantd.InvalidArgumentError, match="is nan"):
            await client.calibrate(slow())

    with RawServer(GetServerInfo=info(), Calibrate=answer) as server:
        run_async(server.address, use)
    assert closed == [True]


def test_a_task_that_is_cancelled_cancels_its_call():
    begun, ended = threading.Event(), threading.Event()

    def answer(items, context):
        context.add_callback(ended.set)
        try:
            for _ in items:
                begun.set()
        except grpc.RpcError:
            pass
        return ANSWER

    async def endless():
        while True:
            yield X
            await asyncio.sleep(0.001)

    async def use(client):
        for xs in (endless(), itertools.repeat(X)):
            begun.clear()
            ended.clear()
            task, wait = asyncio.ensure_future(client.calibrate(xs)), asyncio.get_running_loop().run_in_executor
            assert await wait(None, begun.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await wait(None, ended.wait, 20)

    with RawServer(GetServerInfo=info(), Calibrate=answer) as server:
        run_async(server.address, use)
