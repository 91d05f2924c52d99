"""The types: numbers and names of the contract, packing, and what arguments may be. No server."""

import decimal
import fractions

import ml_dtypes
import numpy as np
import pytest

import quantd
from quantd import DataType, messages
from quantd.types import as_array, data_type, pack, spelled_out, unpack


def test_the_enum_is_that_of_the_contract():
    enum = messages.POOL.FindEnumTypeByName("quantd.v1.DataType")
    contract = {v.name[len("DATA_TYPE_"):]: v.number for v in enum.values if v.number}
    assert contract == {t.name: t.value for t in DataType}


@pytest.mark.parametrize("kind", list(DataType), ids=lambda t: t.name)
def test_types_are_found_by_number_name_and_dtype(kind):
    for name in (kind, int(kind), kind.name, kind.name.lower(), kind.dtype.name, kind.dtype, kind.dtype.type):
        assert data_type(name) is kind


def test_packing_is_lowest_bits_first_over_the_flattened_tensor():
    four = np.array([[1, 2, 3], [4, 5, 15]], ml_dtypes.uint4)
    assert pack(four) == bytes([0x21, 0x43, 0xF5])
    assert pack(np.array([-1, -8, 7], ml_dtypes.int4)) == bytes([0x8F, 0x07])
    assert pack(np.array([1, 2, 3, 0, 1], ml_dtypes.uint2)) == bytes([0b00111001, 0b01])
    assert pack(np.array([-2, 1, -1], ml_dtypes.int2)) == bytes([0b110110])
    assert pack(np.array([0.5, -6.0, 1.0], ml_dtypes.float4_e2m1fn)) == bytes([0xF1, 0x02])
    assert pack(np.array([1, -1.5, 7.5, -7.5, 0.125], ml_dtypes.float6_e2m3fn)) == bytes([0x08, 0xFB, 0xFD, 0x01])
    assert pack(np.array([1.0], ">f4")) == np.array([1.0], "<f4").tobytes()


@pytest.mark.parametrize("names,kind", [
    (("fp8", "e4m3", "float8_e4m3fn", "FLOAT8E4M3FN", "data_type_float8e4m3fn", "fp8-e4m3"), DataType.FLOAT8E4M3FN),
    (("fp4", "e2m1", "float4_e2m1fn", "FLOAT4E2M1"), DataType.FLOAT4E2M1), (("int4", "INT4"), DataType.INT4),
    (("float32", "FLOAT", "fp32"), DataType.FLOAT), (("bf16", "bfloat16"), DataType.BFLOAT16),
])  # fmt: skip
def test_a_type_has_its_usual_names(names, kind):
    assert {data_type(name) for name in names} == {kind}


def test_a_format_of_blocks_says_types_axis_and_block():
    meant = {"output_type": "float8e4m3fn", "scale_type": "float8e8m0", "axis": -1, "block_size": 32}
    assert spelled_out({"output_type": "MXFP8"}) == meant
    assert spelled_out({"output_type": "mxfp8", "axis": 0, "block_size": 0, "scale_type": None}) == {**meant, "axis": 0}
    assert spelled_out({"output_type": "nvfp4"})["block_size"] == 16
    assert spelled_out({"output_type": "int8", "axis": 1}) == {"output_type": "int8", "axis": 1}
    with pytest.raises(quantd.ArgumentError, match="dynamic_quantize") as caught:
        data_type("mxfp8", "output_type")
    assert caught.value.field == "output_type"


@pytest.mark.parametrize("kind", list(DataType), ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (7, 5), (2, 0, 3), (2, 3, 5)], ids=str)
def test_pack_and_unpack_are_inverse(kind, shape):
    rng = np.random.default_rng(7)
    size = int(np.prod(shape))
    raw = rng.integers(0, 256, kind.byte_size(size)).astype(np.uint8)
    if size * kind.bits % 8:
        raw[-1] &= (1 << (size * kind.bits % 8)) - 1
    array = unpack(raw.tobytes(), kind, shape)
    assert array.shape == shape and array.dtype == kind.dtype and array.flags.writeable
    assert pack(array) == raw.tobytes()


def test_python_numbers_take_the_default_type():
    assert as_array(0.5, "scale", DataType.FLOAT).dtype == np.float32
    assert as_array(np.float64(0.5), "scale", DataType.FLOAT).dtype == np.float32
    assert as_array([1, 2], "x", DataType.FLOAT).dtype == np.float32
    assert as_array(-3, "zero_point", DataType.INT4).dtype == ml_dtypes.int4
    assert as_array([], "zero_point", DataType.INT8).dtype == np.int8
    with pytest.raises(ValueError, match="300.*UINT8, 0 to 255"):
        as_array(300, "zero_point", DataType.UINT8)
    with pytest.raises(TypeError, match="integers"):
        as_array(0.5, "zero_point", DataType.UINT8)
    with pytest.raises(TypeError, match="not a number"):
        as_array("0.5", "scale", DataType.FLOAT)


@pytest.mark.parametrize("kind", list(DataType), ids=lambda t: t.name)
def test_what_has_a_dtype_decides(kind):
    """A numpy scalar decides like a 0-D array, and a list of them like a 1-D array, whatever the default type is."""
    scalar = np.zeros((), kind.dtype)[()]
    for default in (DataType.FLOAT, DataType.UINT8, DataType.INT4):
        assert as_array(scalar, "zero_point", default).dtype == kind.dtype
        assert as_array([scalar, scalar], "zero_point", default).dtype == kind.dtype
        assert as_array(np.int64(3), "zero_point", default).dtype == default.dtype
        assert as_array([np.int64(3)], "zero_point", default).dtype == default.dtype


def test_what_looks_like_a_number_and_is_none_is_refused():
    """numpy would accept True as 1, drop an imaginary part with a warning, and read masked values."""
    for values in ([True, 2.0], [[1], [False]], [True]):
        with pytest.raises(TypeError, match="x: True and False are not numbers"):
            as_array(values, "x", DataType.FLOAT)
    for value in (1j, [1 + 2j, 1], decimal.Decimal(1), fractions.Fraction(1), True):
        for default in (DataType.FLOAT, DataType.UINT8):
            with pytest.raises(TypeError, match="x: .* (is not a number|must be integers)"):
                as_array(value, "x", default)
    masked = np.ma.masked_array(np.ones(3, np.float32), mask=[1, 0, 1])
    with pytest.raises(TypeError, match=r"x: 2 of 3 elements are masked; fill them, as by \.filled\(0\)"):
        as_array(masked, "x", DataType.FLOAT)
    assert as_array(masked.filled(0), "x", DataType.FLOAT).tolist() == [0, 1, 0]
    assert as_array(np.ma.masked_array(np.ones(3, np.float32)), "x", DataType.FLOAT).tolist() == [1, 1, 1]


def test_version_is_that_of_the_distribution():
    from importlib import metadata

    assert metadata.version("quantd") == quantd.__version__
