"""Embeddings: the choices of quantize_embeddings, and whose codes need which.

This file is in two packages: quantd, and quantd_core, which needs neither gRPC nor protobuf.
"""

from typing import Any, Dict, Optional

from .choices import NON_FINITES, choice, type_number
from .types import DataType

RECIPES = {"ranges": 1, "unit": 2, "direction": 3, "bits": 4}
BIT_ORDERS = {"msb_first": 1, "lsb_first": 2}
BIT_THRESHOLDS = {"greater": 1, "greater_or_equal": 2}
SIGNED_BITS = {"offset": 1, "twos_complement": 2}

# Whose codes these are; one line each.
PRESETS: Dict[str, Dict[str, Any]] = {
    "sentence-transformers-int8": dict(recipe="ranges", output_type="int8"),
    "sentence-transformers-uint8": dict(recipe="ranges", output_type="uint8"),
    "sentence-transformers-binary": dict(recipe="bits", output_type="int8"),
    "sentence-transformers-ubinary": dict(recipe="bits", output_type="uint8"),
    "cohere-binary": dict(recipe="bits", output_type="int8"),
    "vespa": dict(recipe="bits", output_type="int8", signed_bits="twos_complement"),
    "pgvector": dict(recipe="bits", output_type="uint8"),
    "sqlite-vec-int8": dict(recipe="unit", output_type="int8"),
    "sqlite-vec-binary": dict(recipe="bits", output_type="uint8", bit_order="lsb_first"),
    "usearch-i8": dict(recipe="direction", output_type="int8"),
    "vllm-binary": dict(recipe="bits", output_type="int8", bit_threshold="greater_or_equal"),
    "mongodb": dict(recipe="bits", output_type="uint8"),
}


def numbers(preset: Optional[str], non_finite: Optional[str], **named: Any) -> Dict[str, int]:
    """The contract's numbers of what a call names: recipe, output_type, bit_order, bit_threshold, signed_bits; 0 is none."""
    if preset is not None:
        if preset not in PRESETS:
            raise ValueError(f"preset is {preset!r}; one of {', '.join(map(repr, PRESETS))}")
        twice = [name for name, value in named.items() if value is not None]
        if twice:
            raise TypeError(f"preset is {preset!r}, which says {' and '.join(twice)}; give one or the other")
        named.update(PRESETS[preset])
    return {
        "recipe": choice(named["recipe"], RECIPES, "recipe"),
        "output_type": type_number(named["output_type"]),
        "bit_order": choice(named["bit_order"], BIT_ORDERS, "bit_order"),
        "bit_threshold": choice(named["bit_threshold"], BIT_THRESHOLDS, "bit_threshold"),
        "signed_bits": choice(named["signed_bits"], SIGNED_BITS, "signed_bits"),
        "non_finite": choice(non_finite, NON_FINITES, "non_finite"),
    }


def output_shape(shape, dimensions: int, recipe: int):
    """y's shape, of x's."""
    used = dimensions or shape[-1]
    return (*shape[:-1], -(-used // 8) if recipe == RECIPES["bits"] else used)


def output_type(numbers_of: Any) -> DataType:
    """y's type, of a message or whatever has its fields."""
    signed = numbers_of.recipe in (RECIPES["unit"], RECIPES["direction"])
    return DataType(numbers_of.output_type or (DataType.INT8 if signed else DataType.UINT8))
