"""Granularities: for every assignment of scales to elements, a shape, the scale's shape and the arguments."""

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

from . import oracle


@dataclass(frozen=True)
class Granularity:
    name: str
    shape: Tuple[int, ...]
    scale_shape: Tuple[int, ...]
    options: Tuple[Tuple[str, Any], ...] = ()

    @property
    def arguments(self) -> Dict[str, Any]:
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self.options}

    def block(self) -> List[int]:
        o = self.arguments
        return oracle.block_of(self.shape, self.scale_shape, o.get("axis"), o.get("block_size", 0), o.get("block_shape"))

    def __str__(self) -> str:
        return self.name


def _g(name: Any, shape: Any, scale_shape: Any, **options: Any) -> Any:
    return Granularity(name, shape, scale_shape, tuple(options.items()))


# Odd lengths on purpose: rows and blocks start inside of a byte for 4- and 2-bit types, and tails are ragged. LARGE ones reach every
# loop of a vectorized kernel and several tasks of a threaded one; SMALL ones are for the archive.
LARGE = [
    _g("tensor", (2003,), ()),
    _g("tensor of [1]", (13, 7, 11), (1,), axis=99),
    _g("scalar", (), ()),
    _g("empty", (0, 3), ()),
    _g("axis 1", (29, 67), (67,)),
    _g("axis 0", (29, 67), (29,), axis=0),
    _g("axis -2 of 3", (5, 19, 21), (19,), axis=-2),
    _g("blocks last", (17, 101), (17, 4), axis=-1, block_size=32),
    _g("blocks last odd", (17, 101), (17, 15), axis=1, block_size=7),
    _g("blocks first", (33, 47), (5, 47), axis=0, block_size=8),
    _g("blocks middle", (5, 37, 9), (5, 5, 9), block_size=8),
    _g("block past the end", (6, 11), (6, 1), block_size=1000),
    _g("block of 1-D", (77,), (1,), axis=0, block_size=100),
    _g("groups", (12, 30), (4, 5)),
    _g("groups 3-D", (4, 9, 10), (2, 3, 1)),
    _g("tiles", (150, 259), (2, 3), block_shape=(128, 128)),
    _g("tiles 3-D", (3, 33, 21), (2, 5, 3), block_shape=(2, 8, 9)),
    _g("tiles whole", (5, 41, 9), (1, 6, 1), block_shape=(-1, 7, -1)),
]
SMALL = [
    _g("tensor", (67,), ()),
    _g("tensor of [1]", (3, 2, 5), (1,), axis=99),
    _g("scalar", (), ()),
    _g("empty", (0, 3), ()),
    _g("axis 1", (5, 13), (13,)),
    _g("axis 0", (5, 13), (5,), axis=0),
    _g("axis -2 of 3", (3, 5, 5), (5,), axis=-2),
    _g("blocks last", (3, 37), (3, 2), axis=-1, block_size=32),
    _g("blocks last odd", (3, 17), (3, 3), axis=1, block_size=7),
    _g("blocks first", (11, 5), (2, 5), axis=0, block_size=8),
    _g("blocks middle", (3, 11, 3), (3, 2, 3), block_size=8),
    _g("block past the end", (3, 5), (3, 1), block_size=1000),
    _g("block of 1-D", (17,), (1,), axis=0, block_size=100),
    _g("groups", (6, 10), (2, 5)),
    _g("groups 3-D", (4, 3, 4), (2, 3, 1)),
    _g("tiles", (11, 13), (2, 2), block_shape=(8, 8)),
    _g("tiles 3-D", (3, 11, 5), (2, 2, 2), block_shape=(2, 8, 4)),
    _g("tiles whole", (3, 9, 3), (1, 2, 1), block_shape=(-1, 7, -1)),
]
