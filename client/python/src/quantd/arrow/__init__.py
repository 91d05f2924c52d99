"""Embeddings in Arrow columns and Parquet files: columns of floats in, columns of codes out.

    codes = quantd.arrow.quantize_embeddings(quantd.local(), table["embedding"], preset="pgvector")
    quantd.arrow.quantize_parquet("in.parquet", "out.parquet", column="embedding", preset="pgvector")

and from a shell `python -m quantd.arrow in.parquet out.parquet --column=embedding --preset=pgvector`.

Needs pyarrow, which `pip install quantd[arrow]` installs. columns.py has the first call, files.py the second.
"""

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as _missing:
    raise ImportError(f"quantd.arrow needs pyarrow: pip install 'quantd[arrow]' ({_missing})", name=_missing.name) from _missing

from .columns import quantize_embeddings
from .files import codes_metadata, quantize_parquet

__all__ = ["codes_metadata", "quantize_embeddings", "quantize_parquet"]
