"""hostile_embeddings.py LIBRARY: like hostile.py, for quantd_quantize_embeddings with random wrong fields.

A failure prints its seed; QUANTD_TEST_SEED repeats it.
"""

import ctypes as c
import os
import random
import unittest

from hostile import FLOAT, INVALID_ARGUMENT, LIBRARY, LONG_NUMBERS, NUMBERS, OK, RESOURCE_EXHAUSTED, Error, Tensor, pointer, shape_of, sized


class Embeddings(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32),
        *[(name, c.c_int32) for name in ("recipe", "x_type", "x_rank")],
        *[("x_shape", c.c_void_p), ("x", c.c_void_p), ("x_size", c.c_uint64), ("dimensions", c.c_int64)],
        *[("normalize", c.c_int32), ("non_finite", c.c_int32), ("ranges", c.POINTER(Tensor))],
        *[(name, c.c_int32) for name in ("output_type", "bit_order", "bit_threshold", "signed_bits")],
        *[("y", c.c_void_p), ("y_size", c.c_uint64), ("report", c.c_void_p)],
        *[("threads", c.c_int32), ("reserved", c.c_int32), ("cancelled", c.c_void_p)],
    ]


class Hostile(unittest.TestCase):
    def test_random_embeddings(self):
        seed = int(os.environ.get("QUANTD_TEST_SEED", random.randrange(2**32)))
        rng = random.Random(seed)
        shape, x, y = shape_of(3, 32), (c.c_float * 96)(), (c.c_uint8 * 96)()
        ends = (c.c_float * 64)(*[-1] * 32, *[1] * 32)
        ends_shape = shape_of(2, 32)
        fields = [(name, kind) for name, kind in Embeddings._fields_ if kind in (c.c_int32, c.c_int64) and name != "threads"]
        codes = {}
        for _ in range(20000):
            recipe = rng.randrange(1, 5)
            call, error, ranges = sized(Embeddings), sized(Error), Tensor(FLOAT, 2, pointer(ends_shape), pointer(ends), 256)
            call.recipe, call.x_type, call.x_rank, call.threads = recipe, FLOAT, 2, 1
            call.x_shape, call.x, call.x_size = pointer(shape), pointer(x), 384
            call.y, call.y_size = pointer(y), 12 if recipe == 4 else 96
            if recipe == 1:
                call.ranges = c.pointer(ranges)
            for name, kind in rng.sample(fields, rng.randrange(0, 3)):
                setattr(call, name, rng.choice(NUMBERS if kind == c.c_int32 else LONG_NUMBERS))
            if rng.random() < 0.2:
                setattr(call, rng.choice(("x_shape", "x", "y", "ranges")), None)
            if rng.random() < 0.2:
                setattr(call, rng.choice(("x_size", "y_size")), rng.choice((0, 1, 11, 95, 2**63, 2**64 - 1)))
            if rng.random() < 0.1:
                ranges.size, ranges.data_type = rng.choice((0, 128, 256, 2**64 - 1)), rng.choice(NUMBERS)
            if call.x_rank > 2:  # shapes have no more lengths
                call.x_rank = rng.choice((65, 2**31 - 1))
            code = LIBRARY.quantd_quantize_embeddings(c.byref(call), c.byref(error))
            self.assertIn(code, (OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED), f"seed {seed}: {error.message}")
            self.assertTrue(code != INVALID_ARGUMENT or error.field, f"seed {seed}: {error.message} names no field")
            codes[code] = codes.get(code, 0) + 1
        self.assertGreater(min(codes.get(OK, 0), codes.get(INVALID_ARGUMENT, 0)), 200, codes)


LIBRARY.quantd_quantize_embeddings.restype = c.c_int32
LIBRARY.quantd_quantize_embeddings.argtypes = [c.c_void_p] * 2

if __name__ == "__main__":
    unittest.main()
