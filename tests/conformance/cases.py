"""Granularities: for every way to lay scales over a tensor, a shape, the scale's shape and the arguments."""

import dataclasses

import oracle


@dataclasses.dataclass(frozen=True)
class Granularity:
    name: str
    shape: tuple
    scale_shape: tuple
    options: tuple = ()

    @property
    def arguments(self) -> dict:
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self.options}

    def block(self) -> list:
        o = self.arguments
        return oracle.block_of(self.shape, self.scale_shape, o.get("axis"), o.get("block_size", 0), o.get("block_shape"))

    def __str__(self) -> str:
        return self.name


def _g(name, shape, scale_shape, **options):
    return Granularity(name, shape, scale_shape, tuple(options.items()))


# Odd lengths on purpose: rows and blocks start inside a byte of 4- and 2-bit types, tails are ragged.
GRANULARITIES = [
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
