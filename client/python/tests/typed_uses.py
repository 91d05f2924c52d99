"""Uses of the package for test_typing.py, which type checkers read and nobody runs. A line that ends with "# wrong" must be an error."""

import asyncio
from concurrent.futures import Future
from typing import Any, Dict, Optional, Tuple

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import quantd

Array = npt.NDArray[Any]
x = np.ones((2, 3), np.float32)


class OfTorch:
    """The attributes of torch.Tensor, as torch declares them."""

    def __array__(self, dtype=None): ...  # type: ignore[no-untyped-def]
    def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None): ...  # type: ignore[no-untyped-def]


class OfDlpack:
    def __dlpack__(self, *, stream: Optional[int] = None) -> object: ...


def results(client: quantd.Client) -> None:
    quantized, found = client.quantize(x, 0.1), client.dynamic_quantize(x, output_type="int8", axis=0)
    assert_type(quantized, quantd.Quantized[quantd.Dequantized])
    assert_type(quantized.y, Array)
    assert_type(quantized.scale, Array)
    assert_type(found.scale, Array)
    assert_type(found.error, Optional[quantd.QuantizationError])
    assert_type(found.dequantize(), quantd.Dequantized)
    assert_type(found.dequantize().y, Array)
    assert_type(found.dequantize().shape, Tuple[int, ...])
    assert_type(np.asarray(found.dequantize()), Array)
    assert_type(client.dequantize(found), quantd.Dequantized)
    assert_type(client.quantize_embeddings(x, preset="pgvector"), quantd.QuantizedEmbeddings)
    assert_type(client.info(), quantd.ServerInfo)
    assert_type(client.health(), str)
    assert_type(client.address, str)


def arguments(client: quantd.Client) -> None:
    client.quantize(x, 0.1, axix=1)  # wrong
    client.quantize(x, 0.1, output_type="int7")  # wrong
    client.quantize(x, 0.1, output_type="float32")  # wrong
    client.quantize(x, 0.1, zero_point_order="sideways")  # wrong
    client.quantize(x, 0.1, axis="1")  # wrong
    client.quantize(None, 0.1)  # wrong
    client.quantize(object(), 0.1)  # wrong
    client.quantize(x, 0.1, out=3)  # wrong
    client.dequantize(x, 0.1, output_type="int8")  # wrong
    client.dynamic_quantize(x, scale=0.1)  # wrong
    client.dynamic_quantize(x, scale_type="int8")  # wrong
    client.quantize_embeddings(x, preset="pgvectors")  # wrong
    quantd.Client("localhost", time_out=3)  # wrong
    client.quantise(x, 0.1)  # wrong
    for kind in ("int8", np.int8, np.dtype("int8"), quantd.DataType.INT8, quantd.data_type(input())):
        client.dynamic_quantize(x, output_type=quantd.data_type(kind))
    client.quantize(x, np.float16(0.1), np.int8(3), output_type="INT8", precision="float16", block_shape=[1, -1])
    client.quantize([[1.0, 2.0]], 0.1, [1, 2], saturate=False)
    client.quantize(OfTorch(), OfDlpack())
    client.dequantize(client.dequantize(client.quantize(x, 0.1)), 0.1)
    for preset in quantd.EMBEDDING_PRESETS:
        client.quantize_embeddings(x, preset=preset)
    with client.shared(x) as shared, client.shared_empty(x.shape, "uint8") as out:
        client.quantize(shared, 0.1, out=out)


def streams(client: quantd.Client) -> None:
    with client.stream(max_in_flight=4) as stream:
        assert_type(stream.quantize(x, 0.1), Future[quantd.Quantized[quantd.Dequantized]])
        assert_type(stream.dynamic_quantize(x).result().dequantize(), quantd.Dequantized)
        stream.quantize(x, 0.1, axix=1)  # wrong
        stream.dynamic_quantize(x, symmetry="none")  # wrong
    client.stream(max_inflight=4)  # wrong


async def later(client: quantd.AsyncClient) -> None:
    found = await client.dynamic_quantize(x)
    assert_type(found.scale, Array)
    assert_type(await found.dequantize(), quantd.Dequantized)
    assert_type(await client.health(), str)
    client.dynamic_quantize(x).y  # wrong
    await client.dynamic_quantize(x, axix=1)  # wrong
    asyncio.create_task(client.quantize(x, 0.1))


def here(local: quantd.Local) -> None:
    assert_type(quantd.local(threads=1), quantd.Local)
    assert_type(local.quantize(x, 0.1, out=np.empty((2, 3), np.uint8), threads=1).y, Array)
    local.quantize(x, 0.1, axix=1)  # wrong
    assert_type(quantd.quantize(x, 0.1), quantd.Quantized[quantd.Dequantized])
    assert_type(quantd.dequantize(quantd.dynamic_quantize(x)), quantd.Dequantized)
    assert_type(quantd.calibrate([x, x], axis=1).range, Array)
    quantd.calibrate(x, method="best")  # wrong
    quantd.quantize(x, 0.1, axix=1)  # wrong
    quantd.dynamic_quantize(x, output_type="int7")  # wrong


def files(result: quantd.Quantized, model: Dict[str, Array]) -> None:
    quantd.save("model.safetensors", {**model, "w": result}, overwrite=True)
    file = quantd.load("model.safetensors")
    assert_type(file.metadata, Dict[str, str])
    quantd.save("model.safetensors", {}, over_write=True)  # wrong


def failures(error: quantd.ArgumentError) -> None:
    assert_type(error.field, Optional[str])
    assert_type(error.field_violations, Tuple[quantd.FieldViolation, ...])
