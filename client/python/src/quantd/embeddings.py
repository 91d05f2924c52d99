"""Embeddings: the choices of quantize_embeddings, and which vector database needs which."""

from typing import Any, Dict, Literal, Mapping, Optional, Sequence, Tuple, cast

from .choices import NON_FINITES, choice, numbered, type_number, wrong_choice
from .errors import wrong_type
from .types import DataType

Recipe = Literal["ranges", "unit", "direction", "bits"]
BitOrder = Literal["msb_first", "lsb_first"]
BitThreshold = Literal["greater", "greater_or_equal"]
SignedBits = Literal["offset", "twos_complement"]
Preset = Literal[
    "sentence-transformers-int8", "sentence-transformers-uint8", "sentence-transformers-binary", "sentence-transformers-ubinary",
    "cohere-binary", "vespa", "pgvector", "sqlite-vec-int8", "sqlite-vec-binary", "usearch-i8", "vllm-binary", "mongodb",
]  # fmt: skip
RECIPES = numbered(Recipe)
BIT_ORDERS = numbered(BitOrder)
BIT_THRESHOLDS = numbered(BitThreshold)
SIGNED_BITS = numbered(SignedBits)
_NAMED = ("recipe", "output_type", "bit_order", "bit_threshold", "signed_bits")

# Vector databases and libraries; one line each.
PRESETS: Dict[Preset, Dict[str, Any]] = {
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


def chosen(preset: Any, named: Mapping[str, Any], ranges: Any = None) -> Dict[str, Any]:
    """What a call names, which a preset does in its place."""
    if isinstance(preset, str) and PRESETS.get(cast(Preset, preset), {}).get("recipe") == "ranges" and ranges is None:
        raise wrong_type(
            "ranges", f"ranges are missing: preset {preset!r} needs the lowest and the highest value of each dimension, which belong to the "
            "index: ranges=quantd.calibrate(embeddings, axis=-1).range, of embeddings like those that will be stored")
    if preset is None:
        return {name: named.get(name) for name in _NAMED}
    if not isinstance(preset, str) or preset not in PRESETS:
        raise wrong_choice("preset", preset, PRESETS)
    twice = [name for name in _NAMED if named.get(name) is not None]
    if twice:
        raise wrong_type(twice[0], f"preset is {preset!r}, which says {' and '.join(twice)}; give one or the other")
    return {**dict.fromkeys(_NAMED), **PRESETS[preset]}


def numbers(preset: Any, non_finite: Optional[str], ranges: Any, **named: Any) -> Dict[str, int]:
    """The contract's numbers of what a call names; 0 is none."""
    named = chosen(preset, named, ranges)
    return {
        "recipe": choice(named["recipe"], RECIPES, "recipe"),
        "output_type": type_number(named["output_type"], "output_type"),
        "bit_order": choice(named["bit_order"], BIT_ORDERS, "bit_order"),
        "bit_threshold": choice(named["bit_threshold"], BIT_THRESHOLDS, "bit_threshold"),
        "signed_bits": choice(named["signed_bits"], SIGNED_BITS, "signed_bits"),
        "non_finite": choice(non_finite, NON_FINITES, "non_finite"),
    }


def output_shape(shape: Sequence[int], dimensions: int, recipe: int) -> Tuple[int, ...]:
    """y's shape, of x's."""
    used = dimensions or shape[-1]
    return (*shape[:-1], -(-used // 8) if recipe == RECIPES["bits"] else used)


def output_type(numbers_of: Any) -> DataType:
    """y's type, of a message or whatever has its fields."""
    signed = numbers_of.recipe in (RECIPES["unit"], RECIPES["direction"])
    return DataType(numbers_of.output_type or (DataType.INT8 if signed else DataType.UINT8))
