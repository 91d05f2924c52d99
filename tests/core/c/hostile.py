"""hostile.py LIBRARY: calls libquantd_core.so as another language would, with each argument wrong in turn.

Nothing may crash or hang: every mistake is an error that names it. Pointers are valid or NULL, because C cannot check others.
Python's standard library only. A random failure prints its seed; QUANTD_TEST_SEED repeats it.
"""

import ctypes as c
import os
import random
import struct
import sys
import threading
import unittest

LIBRARY = c.CDLL(sys.argv.pop(1))
QUANTIZE, DEQUANTIZE, DYNAMIC = 1, 2, 3
FLOAT, UINT8, INT8, INT4, FLOAT8E4M3FN, FLOAT4E2M1 = 1, 2, 3, 22, 17, 23
OK, CANCELLED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 0, 1, 3, 8
# Types that stand in place of FLOAT in a tensor, wrong or right, and numbers at the edges.
NUMBERS = [0, 1, 2, 3, 16, 17, 22, 23, 24, 26, 27, 64, 65, -1, -2, 2**31 - 1, -(2**31)]
LONG_NUMBERS = [*NUMBERS, 2**62 - 1, 2**62, 2**63 - 1, -(2**63)]


class Tensor(c.Structure):
    _fields_ = [("data_type", c.c_int32), ("rank", c.c_int32), ("shape", c.c_void_p), ("data", c.c_void_p), ("size", c.c_uint64)]


class Parameters(c.Structure):
    _fields_ = [
        *[(name, c.c_uint32 if name == "struct_size" else c.c_int32) for name in ("struct_size", "operation", "x_type", "x_rank")],
        ("x_shape", c.c_void_p),
        *[(name, c.POINTER(Tensor)) for name in ("scale", "zero_point", "tensor_scale")],
        *[("output_type", c.c_int32), ("has_axis", c.c_int32), ("axis", c.c_int64), ("block_size", c.c_int64)],
        ("block_shape", c.c_void_p),
        *[(name, c.c_int32) for name in ("block_shape_rank", "saturate", "precision", "zero_point_order")],
        *[(name, c.c_int32) for name in ("scale_type", "symmetry", "non_finite", "report_error")],
    ]


class Info(c.Structure):
    _fields_ = [
        *[(name, c.c_int32) for name in ("struct_size", "operation", "x_type", "y_type")],
        *[(name, c.c_int32) for name in ("scale_type", "zero_point_type", "tensor_scale_type", "scale_rank")],
        ("scale_shape", c.c_int64 * 64),
        *[(name, c.c_int64) for name in ("elements", "scales")],
        *[(name, c.c_uint64) for name in ("x_size", "y_size", "scale_size", "zero_point_size", "tensor_scale_size")],
    ]


class Call(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("threads", c.c_int32),
        *[(name + end, kind) for name in ("x", "y", "scale", "zero_point", "tensor_scale")
          for end, kind in (("", c.c_void_p), ("_size", c.c_uint64))],
        ("report", c.c_void_p),
        ("cancelled", c.c_void_p),
    ]


class Error(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("code", c.c_int32), ("field", c.c_char * 64), ("message", c.c_char * 960)]


PLACES = ("x", "y", "scale", "zero_point", "tensor_scale")


def sized(kind):
    return kind(struct_size=c.sizeof(kind))


def shape_of(*lengths):
    return (c.c_int64 * len(lengths))(*lengths)


def pointer(array):
    return c.cast(array, c.c_void_p)


class Job:
    """A valid request and its memory, which a test then spoils."""

    def __init__(self, operation, report=False):
        self.keep = []
        self.parameters = sized(Parameters)
        p = self.parameters
        p.operation, p.x_type, p.x_rank = operation, FLOAT if operation != DEQUANTIZE else INT8, 2
        p.x_shape = pointer(self.hold(shape_of(6, 32)))
        if operation != DYNAMIC:
            scales = self.hold((c.c_float * 6)(*[0.5] * 6))
            zero_points = self.hold((c.c_int8 * 6)(*range(6)))
            rows = self.hold(shape_of(6))
            p.scale = c.pointer(self.hold(Tensor(FLOAT, 1, pointer(rows), pointer(scales), 24)))
            p.zero_point = c.pointer(self.hold(Tensor(INT8, 1, pointer(rows), pointer(zero_points), 6)))
            p.output_type = INT8 if operation == QUANTIZE else FLOAT
        if operation == DEQUANTIZE:
            one = self.hold(c.c_float(1))
            p.tensor_scale = c.pointer(self.hold(Tensor(FLOAT, 0, None, c.cast(c.pointer(one), c.c_void_p), 4)))
        p.has_axis, p.axis = 1, 0
        p.report_error = report

    def hold(self, thing):
        self.keep.append(thing)
        return thing

    def plan(self, error):
        plan = c.c_void_p(1)
        code = LIBRARY.quantd_plan_create(c.byref(self.parameters), c.byref(plan), c.byref(error))
        assert (code == OK) == (plan.value is not None), (code, plan.value)
        return code, plan

    def call(self, plan):
        """A valid call for a plan, with memory for it."""
        info = sized(Info)
        assert LIBRARY.quantd_plan_describe(plan, c.byref(info), None) == OK
        call = sized(Call)
        call.threads = 1
        for name in PLACES:
            size = getattr(info, name + "_size")
            assert size < 1 << 30, size
            if size > 0:
                setattr(call, name, pointer(self.hold((c.c_uint8 * size)())))
                setattr(call, name + "_size", size)
        if self.parameters.report_error:
            call.report = pointer(self.hold((c.c_uint64 * 5)()))
        return call

    def run(self, spoil=lambda call: None):
        """Code, field and message of making the plan and running it."""
        error = sized(Error)
        code, plan = self.plan(error)
        if code == OK:
            call = self.call(plan)
            spoil(call)
            code = LIBRARY.quantd_plan_run(plan, c.byref(call), c.byref(error))
            LIBRARY.quantd_plan_free(plan)
        assert code == error.code
        return code, error.field.decode(), error.message.decode()


class Hostile(unittest.TestCase):
    def wrong(self, answer, field, *texts):
        code, named, message = answer
        self.assertEqual((code, named), (INVALID_ARGUMENT, field), message)
        for text in texts:
            self.assertIn(str(text), message)

    def test_the_right_ones_are_right(self):
        for operation in (QUANTIZE, DEQUANTIZE, DYNAMIC):
            self.assertEqual(Job(operation).run(), (OK, "", ""))
        self.assertEqual(Job(DYNAMIC, report=True).run(), (OK, "", ""))

    def test_null_pointers(self):
        job, error = Job(DYNAMIC), sized(Error)
        plan = c.c_void_p()
        create, describe, run = LIBRARY.quantd_plan_create, LIBRARY.quantd_plan_describe, LIBRARY.quantd_plan_run
        for call, field in [
            (lambda: create(None, c.byref(plan), c.byref(error)), "parameters"),
            (lambda: create(c.byref(job.parameters), None, c.byref(error)), "plan"),
            (lambda: describe(None, c.byref(sized(Info)), c.byref(error)), "plan"),
            (lambda: run(None, c.byref(sized(Call)), c.byref(error)), "plan"),
        ]:
            self.assertEqual((call(), error.field), (INVALID_ARGUMENT, field.encode()))
            self.assertEqual((create(None, c.byref(plan), None), plan.value), (INVALID_ARGUMENT, None))
        _, plan = job.plan(error)
        self.assertEqual((describe(plan, None, c.byref(error)), error.field), (INVALID_ARGUMENT, b"info"))
        self.assertEqual((run(plan, None, c.byref(error)), error.field), (INVALID_ARGUMENT, b"call"))
        LIBRARY.quantd_plan_free(plan)
        LIBRARY.quantd_plan_free(None)

    def test_struct_sizes(self):
        for size in (0, 1, c.sizeof(Parameters) - 1, 4097, 2**32 - 1):
            job = Job(DYNAMIC)
            job.parameters.struct_size = size
            self.wrong(job.run(), "struct_size", size, c.sizeof(Parameters))
            self.wrong(Job(DYNAMIC).run(lambda call: setattr(call, "struct_size", size % 64)), "struct_size")
        # A struct of a later library is refused only if its additional fields are set.
        for last, code in ((0, OK), (1, INVALID_ARGUMENT)):
            job, plan = Job(DYNAMIC), c.c_void_p()
            job.parameters.struct_size += 8
            longer = c.create_string_buffer(bytes(job.parameters) + bytes(7) + bytes([last]), c.sizeof(Parameters) + 8)
            self.assertEqual(LIBRARY.quantd_plan_create(longer, c.byref(plan), None), code)
            LIBRARY.quantd_plan_free(plan)
        error = Error(struct_size=8, code=77)
        self.assertEqual(LIBRARY.quantd_plan_create(c.byref(Job(DYNAMIC).parameters), c.byref(c.c_void_p()), c.byref(error)), INVALID_ARGUMENT)
        self.assertEqual((error.code, error.message), (77, b""))

    def test_every_size_of_a_call(self):
        for operation in (QUANTIZE, DEQUANTIZE, DYNAMIC):
            for place in PLACES:
                for change in (-1, 1, 1000, 2**63):

                    def spoil(call, place=place, change=change):
                        size = getattr(call, place + "_size")
                        setattr(call, place + "_size", (size + change) % 2**64)

                    self.wrong(Job(operation).run(spoil), place, "bytes, the plan's has")
                if operation == DYNAMIC and place != "tensor_scale":
                    self.wrong(Job(operation).run(lambda call, place=place: setattr(call, place, None)), place, "NULL")

    def test_overlaps(self):
        outputs = [("y", "x"), ("scale", "x"), ("scale", "y"), ("zero_point", "y"), ("zero_point", "scale")]
        for output, other in outputs:
            for offset in (0, 1):

                def spoil(call, output=output, other=other, offset=offset):
                    end = getattr(call, other) + getattr(call, other + "_size") - 1
                    setattr(call, output, end if offset else getattr(call, other))

                answer = Job(DYNAMIC).run(spoil)
                self.assertEqual(answer[0], INVALID_ARGUMENT)
                self.assertIn("overlaps", answer[2])
        # Neighbours do not overlap.
        memory = (c.c_uint8 * (6 * 32 * 5))()

        def beside(call):
            call.x = pointer(memory)
            call.y = c.addressof(memory) + 6 * 32 * 4

        self.assertEqual(Job(DYNAMIC).run(beside)[0], OK)
        # At the end of the address space.
        self.wrong(Job(DYNAMIC).run(lambda call: setattr(call, "y", 2**64 - 8)), "y", "behind its address")

    def test_shapes(self):
        job = Job(DYNAMIC)
        for rank in (-1, 65, 2**31 - 1, -(2**31)):
            job.parameters.x_rank = rank
            self.wrong(job.run(), "x_shape", rank, 64)
        for lengths, text in [((2**62, 1), "2^62"), ((2**32, 2**32), "2^62"), ((0, 2**62), "2^62"), ((-1, 5), "-1")]:
            job = Job(DYNAMIC)
            job.parameters.x_shape = pointer(job.hold(shape_of(*lengths)))
            self.wrong(job.run(), "x", text)
        job = Job(DYNAMIC)
        job.parameters.x_shape = None
        self.wrong(job.run(), "x_shape", "NULL", 2)
        # Few bytes claim many scales.
        job = Job(DYNAMIC)
        job.parameters.x_shape = pointer(job.hold(shape_of(2**40, 0)))
        self.wrong(job.run(), "x", 65536)
        job = Job(QUANTIZE)
        job.parameters.scale.contents.shape = pointer(job.hold(shape_of(2**61)))
        self.wrong(job.run(), "scale")

    def test_tensors(self):
        for operation, name in [(QUANTIZE, "scale"), (QUANTIZE, "zero_point"), (DEQUANTIZE, "tensor_scale")]:
            for field, values in {
                "data_type": [0, -1, 7, 27, 2**31 - 1, -(2**31)],
                "rank": [-1, 65, 3],
                "data": [None],
                "size": [0, 1, 1000, 2**63],
            }.items():
                for value in values:
                    job = Job(operation)
                    if field == "rank" and value == 3:
                        getattr(job.parameters, name).contents.shape = pointer(job.hold(shape_of(6, 1, 1)))
                    setattr(getattr(job.parameters, name).contents, field, value)
                    code, named, message = job.run()
                    self.assertEqual(code, INVALID_ARGUMENT, (operation, name, field, value))
                    self.assertIn(named, (name, "output_type"), message)
        job = Job(QUANTIZE)
        job.parameters.scale = None
        self.wrong(job.run(), "scale", "NULL")

    def test_enumerations(self):
        for operation, fields in {
            QUANTIZE: ["saturate", "zero_point_order", "report_error", "has_axis", "precision", "output_type", "x_type", "operation"],
            DEQUANTIZE: ["has_axis", "output_type", "x_type"],
            DYNAMIC: ["saturate", "symmetry", "non_finite", "report_error", "has_axis", "scale_type", "output_type", "x_type"],
        }.items():
            for field in fields:
                for value in (-1, 99, 2**31 - 1, -(2**31)):
                    job = Job(operation)
                    setattr(job.parameters, field, value)
                    named = "x" if field == "x_type" else field
                    self.wrong(job.run(), named, value)

    def test_fields_of_other_operations(self):
        tensor = Job(QUANTIZE).parameters.scale
        for operation, fields in {
            QUANTIZE: {"tensor_scale": tensor, "scale_type": 1, "symmetry": 1, "non_finite": 1},
            DEQUANTIZE: {"saturate": 1, "precision": 1, "zero_point_order": 1, "scale_type": 1, "symmetry": 1, "non_finite": 1, "report_error": 1},
            DYNAMIC: {"scale": tensor, "zero_point": tensor, "tensor_scale": tensor, "precision": 1, "zero_point_order": 1},
        }.items():
            for field, value in fields.items():
                job = Job(operation)
                setattr(job.parameters, field, value)
                self.wrong(job.run(), field, "has none")

    def test_granularity(self):
        for operation in (QUANTIZE, DYNAMIC):
            for axis in (2, -3, 2**63 - 1, -(2**63)):
                job = Job(operation)
                job.parameters.axis = axis
                self.wrong(job.run(), "axis", axis)
            job = Job(operation)
            job.parameters.has_axis, job.parameters.axis = 0, 1
            self.wrong(job.run(), "axis", "has_axis is 0")
            for size in (-1, -(2**63)):
                job = Job(operation)
                job.parameters.block_size = size
                self.wrong(job.run(), "block_size", size)
            for lengths in ((0, 1), (1,), (-2, 1), (1, 1)):
                job = Job(operation)
                job.parameters.block_shape, job.parameters.block_shape_rank = pointer(job.hold(shape_of(*lengths))), len(lengths)
                self.wrong(job.run(), "block_shape")
            for rank in (-1, 65, 2):
                job = Job(operation)
                job.parameters.block_shape_rank = rank
                self.wrong(job.run(), "block_shape", rank)

    def test_threads_report_and_flag(self):
        for threads in (-1, -(2**31)):
            self.wrong(Job(DYNAMIC).run(lambda call, threads=threads: setattr(call, "threads", threads)), "threads", threads)
        for threads in (0, 1, 2, 1000, 2**31 - 1):
            self.assertEqual(Job(DYNAMIC).run(lambda call, threads=threads: setattr(call, "threads", threads))[0], OK)
        self.wrong(Job(DYNAMIC, report=True).run(lambda call: setattr(call, "report", None)), "report")
        room = (c.c_uint64 * 5)()
        self.wrong(Job(DYNAMIC).run(lambda call: setattr(call, "report", pointer(room))), "report")
        flag = c.c_int32(1)
        self.assertEqual(Job(DYNAMIC).run(lambda call: setattr(call, "cancelled", c.addressof(flag)))[0], CANCELLED)

    def test_what_x_holds(self):
        def nan(call):
            c.memmove(call.x + 4 * 7, struct.pack("<f", float("nan")), 4)

        self.wrong(Job(DYNAMIC).run(nan), "x", 7)
        job = Job(QUANTIZE)
        c.memset(job.parameters.scale.contents.data, 0, 8)
        self.wrong(job.run(), "scale", "scale[0] is 0")

    def test_random_fields(self):
        seed = int(os.environ.get("QUANTD_TEST_SEED", random.randrange(2**32)))
        rng = random.Random(seed)
        fields = [(name, kind) for name, kind in Parameters._fields_ if kind in (c.c_int32, c.c_int64)]
        codes = {}
        for _ in range(20000):
            job = Job(rng.choice((QUANTIZE, DEQUANTIZE, DYNAMIC)), report=rng.random() < 0.3)
            job.parameters.block_shape = pointer(job.hold(shape_of(*[rng.choice((-1, 1, 2, 5, 32, rng.choice(LONG_NUMBERS))) for _ in range(64)])))
            lengths = [rng.choice((1, 2, 3, 6, 32)) if rng.random() < 0.97 else rng.choice(LONG_NUMBERS) for _ in range(64)]
            if rng.random() < 0.5:
                job.parameters.x_shape = pointer(job.hold(shape_of(*lengths)))
            for name, kind in rng.sample(fields, rng.randrange(1, 5)):
                setattr(job.parameters, name, rng.choice(NUMBERS if kind == c.c_int32 else LONG_NUMBERS))
            for name in ("scale", "zero_point", "tensor_scale"):
                tensor = getattr(job.parameters, name)
                if tensor and rng.random() < 0.3:
                    tensor.contents.data_type = rng.choice(NUMBERS)
                    tensor.contents.size = rng.choice((0, 1, 2, 3, 4, 6, 12, 24))
            error = sized(Error)
            code, plan = job.plan(error)
            if code == OK:
                info = sized(Info)
                LIBRARY.quantd_plan_describe(plan, c.byref(info), None)
                if info.x_size + info.y_size + info.scale_size < 1 << 26:
                    call = job.call(plan)
                    code = LIBRARY.quantd_plan_run(plan, c.byref(call), c.byref(error))
                LIBRARY.quantd_plan_free(plan)
            self.assertIn(code, (OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED), f"seed {seed}: {error.message}")
            self.assertEqual(code == OK, not error.message, f"seed {seed}")
            self.assertTrue(code != INVALID_ARGUMENT or error.field, f"seed {seed}: {error.message} names no field")
            codes[code] = codes.get(code, 0) + 1
        self.assertGreater(min(codes.get(OK, 0), codes.get(INVALID_ARGUMENT, 0)), 200, codes)  # some 500 are right

    def test_many_threads(self):
        """Plans are made, run and freed by threads independently of each other, wrong ones among them."""
        answers, wrong = [], []

        def work(index):
            for turn in range(50):
                job = Job(1 + (index + turn) % 3)
                if turn % 5 == 4:
                    job.parameters.x_type = 99
                    wrong.append(job.run()[:2])
                else:
                    answers.append(job.run(lambda call: setattr(call, "threads", turn % 3))[0])

        threads = [threading.Thread(target=work, args=(index,)) for index in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((set(answers), len(answers)), ({OK}, 640))
        self.assertEqual((set(wrong), len(wrong)), ({(INVALID_ARGUMENT, "x")}, 160))


for prepared in ("quantd_plan_create", "quantd_plan_describe", "quantd_plan_run"):
    getattr(LIBRARY, prepared).restype = c.c_int32
    getattr(LIBRARY, prepared).argtypes = [c.c_void_p] * 3
LIBRARY.quantd_plan_free.restype = None
LIBRARY.quantd_plan_free.argtypes = [c.c_void_p]

if __name__ == "__main__":
    unittest.main()
