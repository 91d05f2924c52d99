"""Stored parameters: what is put, results of calls with them, servers that lack a set, and those of quantd.local()."""

import asyncio
import hashlib
import itertools
import pickle

import grpc
import ml_dtypes
import numpy as np
import pytest

import quantd
from quantd import messages, parameters
from quantd.types import from_message, to_message
from raw_server import RawServer, info
from test_split import bits

X = np.random.default_rng(3).standard_normal((6, 16)).astype(np.float32)
SCALE = np.linspace(0.01, 0.1, 16, dtype=np.float32)
ZERO = np.arange(16, dtype=np.int8)
names = (f"set-{i}" for i in itertools.count())


@pytest.fixture(params=["fake", "real", "local"])
def keeper(request, address):
    """A client of a server that stores sets, or local()."""
    if request.param == "fake":
        with quantd.Client(address, timeout=30) as client:
            yield client
    elif request.param == "real":
        yield request.getfixturevalue("real")
    else:
        pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")
        with quantd.local() as local:
            yield local


def same(found, wanted, reference):
    assert bits(found.y) == bits(wanted.y) and found.y.dtype == wanted.y.dtype and found.parameters == reference
    assert wanted.parameters is None


def test_quantize_and_dequantize(keeper):
    stored = keeper.put_parameters("weights", scale=SCALE, zero_point=ZERO, axis=1)
    assert stored.name == "weights" and stored.kind == "quantize" and str(stored) == stored.reference
    wanted = keeper.quantize(X, SCALE, ZERO, axis=1)
    for given in (stored, stored.reference, pickle.loads(pickle.dumps(stored))):
        found = keeper.quantize(X, parameters=given)
        same(found, wanted, stored.reference)
        assert found.scale is None and found.zero_point is None and found.axis is None
        same(found.dequantize(), wanted.dequantize(), stored.reference)
        same(keeper.dequantize(found.y, parameters=given), wanted.dequantize(), stored.reference)
        same(keeper.dequantize(pickle.loads(pickle.dumps(found))), wanted.dequantize(), stored.reference)
    assert keeper.quantize(X, parameters=stored, report_error=True).error.saturated_elements >= 0
    assert keeper.quantize(X, 0.5).parameters is None


def test_a_set_may_have_a_part_of_the_arguments(keeper):
    stored = keeper.put_parameters(next(names), axis=0, output_type="int4", saturate=False)
    found = keeper.quantize(X, np.ones(6, np.float32), parameters=stored)
    same(found, keeper.quantize(X, np.ones(6, np.float32), axis=0, output_type="int4"), stored.reference)
    assert found.scale.shape == (6,)
    blocks = keeper.put_parameters(next(names), scale=np.ones((6, 4), np.float32), block_size=4)
    found = keeper.quantize(X, output_type="uint8", parameters=blocks)
    same(found, keeper.quantize(X, np.ones((6, 4), np.float32), block_size=4), blocks.reference)
    assert found.block_size == 0 and found.dequantize(output_type="bfloat16").y.dtype == ml_dtypes.bfloat16


def test_embeddings(keeper):
    ranges = np.stack([X.min(axis=0), X.max(axis=0)])
    for arguments in (dict(preset="sentence-transformers-int8", ranges=ranges), dict(preset="pgvector", dimensions=9),
                      dict(recipe="direction", normalize=True), dict(recipe="bits", bit_order="lsb_first", output_type="int8")):
        stored = keeper.put_parameters(next(names), **arguments)
        assert stored.kind == "quantize_embeddings" and "preset" not in stored.arguments
        same(keeper.quantize_embeddings(X, parameters=stored), keeper.quantize_embeddings(X, **arguments), stored.reference)


def test_get_and_list(keeper):
    name = next(names)
    one = keeper.put_parameters(name, scale=SCALE, zero_point=ZERO, axis=-1, precision="float32", zero_point_order="after_rounding",
                                output_type="int8", block_shape=None, saturate=True)
    assert keeper.get_parameters(name) == one == keeper.get_parameters(one.reference) == keeper.put_parameters(name, **one.arguments)
    found = keeper.get_parameters(name).arguments
    assert found.keys() == {"scale", "zero_point", "axis", "precision", "zero_point_order", "output_type"}
    assert bits(found["scale"]) == bits(SCALE) and found["zero_point"].dtype == np.int8 and found["output_type"] == quantd.DataType.INT8
    assert keeper.list_parameters(name) == [one.reference]
    two = keeper.put_parameters(name, scale=0.5)
    assert two.reference != one.reference and keeper.list_parameters(name) == sorted([one.reference, two.reference])
    assert set(keeper.list_parameters()) >= {one.reference, two.reference} and keeper.list_parameters("no such") == []
    with pytest.raises(quantd.InvalidArgumentError, match="several sets have"):
        keeper.get_parameters(name)
    with pytest.raises(quantd.InvalidArgumentError, match="several sets have"):
        keeper.quantize(X, parameters=name)
    assert bits(keeper.quantize(X, parameters=two.reference).y) == bits(keeper.quantize(X, 0.5).y)


def test_unknown_sets_and_wrong_references(keeper):
    for reference in ("nobody-has-it", "nobody-has-it@sha256:" + "0" * 64):
        for call in (lambda: keeper.quantize(X, parameters=reference), lambda: keeper.get_parameters(reference)):
            with pytest.raises(quantd.QuantdError) as caught:
                call()
            assert caught.value.code is grpc.StatusCode.NOT_FOUND
    for reference in ("Upper", "a b", "a@sha256:12", "a@md5:" + "0" * 32, "-a", "a" * 65):
        with pytest.raises(quantd.InvalidArgumentError):
            keeper.quantize(X, parameters=reference)
    with pytest.raises(quantd.InvalidArgumentError, match="name is 'Upper'"):
        keeper.put_parameters("Upper", scale=1.0)


def test_arguments_that_are_none_of_a_set(keeper):
    for arguments, match in (
        ({}, "needs arguments"), ({"output_type": "int8"}, "needs arguments"), ({"scale": 1.0, "recipe": "bits"}, "one of them"),
        ({"x": X, "scale": 1.0}, "x can't be stored"), ({"scale": 1.0, "out": 1, "report_error": True}, "out and report_error can't"),
        ({"scale": X.astype(np.float64)}, "float64"), ({"preset": "vespa", "recipe": "bits"}, "which says recipe")):
        with pytest.raises(TypeError, match=match):
            keeper.put_parameters("wrong", **arguments)
    for wrong, kind in ((5, TypeError), (b"name", TypeError), ("", ValueError)):
        with pytest.raises(kind, match="parameters is"):
            keeper.quantize(X, parameters=wrong)
    with pytest.raises(TypeError, match="scale is missing"):
        keeper.quantize(X)
    with pytest.raises(TypeError, match="scale is missing"):
        keeper.dequantize(np.uint8([1]))
    with pytest.raises(TypeError, match="has its own parameters"):
        keeper.dequantize(keeper.quantize(X, 0.5), parameters="name")


def test_streams(keeper):
    stored = keeper.put_parameters("streamed", scale=0.25, output_type="int8")
    bitwise = keeper.put_parameters("streamed-bits", recipe="bits")
    with keeper.stream() as stream:
        items = [stream.quantize(X, parameters=stored), stream.quantize(X, 0.25, output_type="int8"),
                 stream.dequantize(np.int8([[4]]), parameters="streamed"), stream.quantize_embeddings(X, parameters=bitwise)]
        missing = stream.quantize(X, parameters="nobody-has-it")
        same(items[0].result(), items[1].result(), stored.reference)
        assert items[2].result().y.tolist() == [[1.0]] and items[3].result().y.shape == (6, 2)
        with pytest.raises(quantd.QuantdError, match="NOT_FOUND"):
            missing.result()


def test_local_says_what_a_server_says():
    """Fields that both the request and the set have, and sets of the other kind; also with a set that is made here."""
    pytest.importorskip("quantd_core")
    with quantd.local() as local:
        stored = local.put_parameters("both", scale=SCALE, axis=1, output_type="int8")
        other = local.put_parameters("other", recipe="bits")
        for field, call in (
            ("scale", lambda **k: local.quantize(X, 1.0, **k)), ("axis", lambda **k: local.quantize(X, axis=0, **k)),
            ("output_type", lambda **k: local.quantize(X, output_type="int8", **k)),
            ("scale", lambda **k: local.dequantize(np.int8([[1]]), 1.0, **k))):
            with pytest.raises(quantd.InvalidArgumentError, match=f"{field} is in the request and in both@sha256:") as caught:
                call(parameters=stored)
            assert caught.value.field == field
        with pytest.raises(quantd.InvalidArgumentError, match="a set of quantize_embeddings, which is not for Quantize"):
            local.quantize(X, parameters=other)
        with pytest.raises(quantd.InvalidArgumentError, match="a set of quantize, which is not for QuantizeEmbeddings"):
            local.quantize_embeddings(X, parameters=stored)
        with quantd.local() as second:  # it has never seen the set
            assert second.quantize(X, parameters=stored).parameters == stored.reference
            assert second.list_parameters() == [stored.reference]


# --- servers that lack a set ------------------------------------------------------------------------------------------------


class Replica:
    """Answers Quantize with a set that was put, else NOT_FOUND; it forgets the set `forgets` times."""

    def __init__(self, forgets=0):
        self.sets, self.puts, self.asked, self.forgets = {}, 0, 0, forgets

    def put(self, data, context):
        request = messages.PutParametersRequest.FromString(data)
        self.puts += 1
        reference = f"{request.name}@sha256:{hashlib.sha256(request.parameters.SerializeToString(deterministic=True)).hexdigest()}"
        if self.puts > self.forgets:
            self.sets[reference] = request.parameters
        return messages.PutParametersResponse(reference=reference).SerializeToString()

    def answer(self, request):
        self.asked += 1
        if request.parameters not in self.sets:
            return None
        y = to_message(messages.Tensor, np.zeros(tuple(request.x.shape), np.uint8))
        return messages.QuantizeResponse(y=y, parameters=request.parameters)

    def quantize(self, data, context):
        found = self.answer(messages.QuantizeRequest.FromString(data))
        if found is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "call PutParameters, then try again")
        return found.SerializeToString()

    def stream(self, items, context):
        for data in items:
            item = messages.StreamRequest.FromString(data)
            found = self.answer(item.quantize)
            answer = messages.StreamResponse(id=item.id)
            if found is None:
                answer.error.code, answer.error.message = 5, "call PutParameters, then try again"
            else:
                answer.quantize.CopyFrom(found)
            yield answer.SerializeToString()

    def __enter__(self):
        self._server = RawServer(GetServerInfo=info(1 << 20), Quantize=self.quantize, Stream=self.stream, PutParameters=self.put)
        self.address = self._server.address
        return self

    def __exit__(self, *_):
        self._server.stop()


def make(**arguments):
    stored = parameters.make(arguments)
    reference = f"name@sha256:{hashlib.sha256(stored.data).hexdigest()}"
    return parameters._put(stored, messages.PutParametersResponse(reference=reference).SerializeToString())


@pytest.mark.parametrize("forgets", [0, 1, 4])
def test_a_server_that_lacks_the_set_is_given_it(forgets):
    stored = make(scale=0.5)
    with Replica(forgets) as replica, quantd.Client(replica.address, timeout=30) as client:
        assert client.quantize(X, parameters=stored).parameters == stored.reference
        puts, asked = replica.puts, replica.asked
        assert puts > forgets and asked == {0: 2, 1: 3, 4: 4}[forgets]
        assert client.quantize(X, parameters=stored).parameters == stored.reference and replica.puts == puts


def test_one_that_never_keeps_it_is_an_error():
    with Replica(1000) as replica, quantd.Client(replica.address, timeout=30) as client:
        with pytest.raises(quantd.QuantdError, match="NOT_FOUND: call PutParameters"):
            client.quantize(X, parameters=make(scale=0.5))
        assert replica.puts == 10 and replica.asked == 5
        with pytest.raises(quantd.QuantdError, match="NOT_FOUND: call PutParameters"):  # a name alone does not fix the contents
            client.quantize(X, parameters="name")
        assert replica.puts == 10


def test_one_that_keeps_no_sets_says_why():
    def no(data, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no --parameters_dir")

    replica = Replica()
    with RawServer(Quantize=replica.quantize, PutParameters=no) as server, quantd.Client(server.address, timeout=30) as client:
        with pytest.raises(quantd.QuantdError, match="FAILED_PRECONDITION: no --parameters_dir"):
            client.quantize(X, parameters=make(scale=0.5))


def test_streams_give_it_as_well():
    stored = make(scale=0.5)
    with Replica(1) as replica, quantd.Client(replica.address, timeout=30) as client:
        with client.stream(max_in_flight=2) as stream:
            futures = [stream.quantize(X, parameters=stored) for _ in range(20)]
        assert all(future.result().parameters == stored.reference for future in futures)
        assert 2 <= replica.puts <= 8

    async def ask(address):
        async with quantd.AsyncClient(address, timeout=30) as client:
            async with client.stream(max_in_flight=2) as stream:
                found = await asyncio.gather(*[stream.quantize(X, parameters=stored) for _ in range(20)])
            return [*found, await client.quantize(X, parameters=stored)]

    with Replica(1) as replica:
        found = asyncio.run(ask(replica.address))
        assert all(result.parameters == stored.reference for result in found)
    with Replica() as replica:
        async def one(address):
            async with quantd.AsyncClient(address, timeout=30) as client:
                return await client.quantize(X, parameters=stored)

        assert asyncio.run(one(replica.address)).parameters == stored.reference and replica.puts == 1


def test_an_answer_without_the_reference_is_wrong():
    """From a server that does not know parameters, and so has left them out."""
    y = to_message(messages.Tensor, np.zeros((6, 16), np.uint8))
    for used in ("", "other@sha256:" + "0" * 64, "nam"):
        data = messages.QuantizeResponse(y=y, parameters=used).SerializeToString()
        with RawServer(Quantize=lambda *_: data) as server, quantd.Client(server.address, timeout=30) as client:
            with pytest.raises(quantd.QuantdError, match="INTERNAL: .* it was made with the parameters"):
                client.quantize(X, parameters="name")


# --- large tensors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_pieces_of_a_large_tensor_have_what_the_set_says(kind):
    """16 MiB: a server with messages of 1 MiB is asked for the set once, and then each piece contains its scales."""
    x = np.ones((1 << 10, 1 << 12), np.float32)
    stored = make(scale=np.arange(1, 1025, dtype=np.float32), axis=0, output_type="int8")
    asked, scales = [], []

    def get(data, context):
        asked.append(messages.GetParametersRequest.FromString(data).reference)
        return messages.GetParametersResponse(reference=stored.reference, parameters=stored.message()).SerializeToString()

    def answer(data, context):
        request = messages.QuantizeRequest.FromString(data)
        scales.append(from_message(request.scale).size)
        assert not request.parameters and request.output_type == 3
        y = np.ones(tuple(request.x.shape), np.int8)
        return messages.QuantizeResponse(y=to_message(messages.Tensor, y)).SerializeToString()

    with RawServer(GetServerInfo=info(1 << 20), Quantize=answer, GetParameters=get) as server:
        def call(given):
            if kind == "sync":
                with quantd.Client(server.address, timeout=60) as client:
                    return client.quantize(x, parameters=given)

            async def ask():
                async with quantd.AsyncClient(server.address, timeout=60) as client:
                    return await client.quantize(x, parameters=given)

            return asyncio.run(ask())

        found = call("name")
        assert found.parameters == stored.reference and found.y.dtype == np.int8 and asked == ["name"]
        assert found.scale is None and found.axis is None and sum(scales) == 1024 and len(scales) > 16
        assert call(stored).parameters == stored.reference and len(asked) == 1


def test_a_completed_request_is_the_servers():
    stored = make(scale=SCALE, zero_point=ZERO, axis=1, precision="float32")
    for operation, x in (("quantize", X), ("dequantize", X.astype(np.int8))):
        request = quantd.requests.make(operation, x, parameters=stored)
        whole = parameters.completed(request, stored)
        assert whole.granularity == (1, 0, None) and bits(whole.operands["scale"]) == bits(SCALE) and not whole.reference
        with pytest.raises(quantd.InvalidArgumentError, match="axis is in the request and in"):
            parameters.completed(quantd.requests.make(operation, x, parameters=stored, axis=1), stored)
        with pytest.raises(quantd.InvalidArgumentError, match="scale is in the request and in"):
            parameters.completed(quantd.requests.make(operation, x, 1.0, parameters=stored), stored)
    with pytest.raises(quantd.InvalidArgumentError, match="which is not for QuantizeEmbeddings"):
        parameters.completed(quantd.requests.make("quantize_embeddings", X, parameters=stored), stored)


def test_the_encoding_is_canonical():
    """As in the contract, whatever the types, layouts and order of the arguments."""
    one = make(scale=SCALE, zero_point=ZERO, axis=1, output_type="int8")
    two = make(output_type=np.int8, axis=np.int64(1), zero_point=ZERO[::-1][::-1], scale=SCALE.astype(">f4"))
    assert one.reference == two.reference and one.data == two.data
    four = make(scale=0.5, zero_point=np.array(3, ml_dtypes.uint4))
    assert four.message().quantize.zero_point.raw_data == b"\x03"
    assert make(recipe="unit", dimensions=0, normalize=False).data == bytes([0x12, 2, 0x10, 2])


def test_sets_may_be_listed_while_others_are_put():
    """A dictionary that grows during an iteration raises."""
    import threading

    from quantd.local_parameters import LocalSets

    sets, errors, end = LocalSets(), [], threading.Event()

    def put():
        for number in range(3000):
            sets.put_parameters("many", scale=float(number + 1))
        end.set()

    def ask():
        try:
            while not end.is_set():
                sets.list_parameters()
                with pytest.raises(quantd.QuantdError):
                    sets.get_parameters("none")
        except RuntimeError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for work in (put, ask, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
