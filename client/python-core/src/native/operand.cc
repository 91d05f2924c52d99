#include "operand.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>

#include "dtypes.h"
#include "packing.h"

namespace quantd::python {
namespace {

absl::Span<const uint8_t> BytesAt(const void* data, uint64_t size) {
  return {static_cast<const uint8_t*>(data), static_cast<size_t>(size)};
}

// A 0-D array of a Python number that the type can hold; null for everything else, including
// errors. The same as convert, in a tenth of the time.
nb::object ArrayOfNumber(nb::handle value, DataType type) {
  const DataTypeInfo& info = Info(type);
  int64_t integer = 0;
  float number = 0;
  if (PyLong_CheckExact(value.ptr())) {
    int overflow = 0;
    integer = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow != 0) return {};
    number = static_cast<float>(integer);
  } else if (PyFloat_CheckExact(value.ptr()) && type == DataType::kFloat) {
    const double wide = PyFloat_AS_DOUBLE(value.ptr());
    if (std::abs(wide) > std::numeric_limits<float>::max()) return {};
    number = static_cast<float>(wide);
  } else {
    return {};
  }
  const bool is_integer = info.kind == DataTypeKind::kInteger;
  if (is_integer ? integer < info.minimum || integer > info.maximum : type != DataType::kFloat) {
    return {};
  }
  nb::object array = Stolen(PyArray_NewFromDescr(&PyArray_Type, NewDtype(type), 0, nullptr, nullptr,
                                                 nullptr, 0, nullptr));
  const void* const from = is_integer ? static_cast<const void*>(&integer) : &number;
  std::memcpy(PyArray_DATA(AsArray(array)), from,
              static_cast<size_t>(PyArray_ITEMSIZE(AsArray(array))));
  return array;
}

// A 0-D array of a numpy scalar, such as numpy.float32(.05), of a type that quantd has; null for
// everything else. The same as convert, without the way back into Python (2 us).
nb::object ArrayOfScalar(nb::handle value) {
  if (!PyArray_IsScalar(value.ptr(), Generic)) return {};
  nb::object array = Stolen(PyArray_FromScalar(value.ptr(), nullptr));
  return TypeOf(AsArray(array)).has_value() ? array : nb::object();
}

}  // namespace

Extent ExtentOf(PyArrayObject* array) {
  if (PyArray_SIZE(array) == 0) return {};
  const auto data = reinterpret_cast<uintptr_t>(PyArray_DATA(array));
  Extent extent = {data, data + static_cast<uintptr_t>(PyArray_ITEMSIZE(array))};
  for (int i = 0; i < PyArray_NDIM(array); ++i) {
    const npy_intp reach = (PyArray_DIM(array, i) - 1) * PyArray_STRIDE(array, i);
    (reach < 0 ? extent.begin : extent.end) += static_cast<uintptr_t>(reach);
  }
  return extent;
}

Shape ShapeOf(PyArrayObject* array) {
  return Shape(PyArray_DIMS(array), PyArray_DIMS(array) + PyArray_NDIM(array));
}

Operand::Operand(nb::handle value, const char* name, DataType fallback, nb::handle convert)
    : name_(name), array_(nb::borrow(value)) {
  std::optional<DataType> type;
  // A subclass has rules of its own, such as a mask, which convert handles.
  if (PyArray_CheckExact(value.ptr())) type = TypeOf(AsArray(value));
  if (!type.has_value()) {
    array_ = ArrayOfNumber(value, fallback);
    if (!array_.is_valid()) array_ = ArrayOfScalar(value);
    is_callers_ = !array_.is_valid();
    if (is_callers_) array_ = convert(value, name, static_cast<int>(fallback));
    if (PyArray_Check(array_.ptr())) type = TypeOf(AsArray(array_));
    if (!type.has_value()) throw nb::type_error("no array of a type that quantd has");
  }
  type_ = *type;
  shape_ = ShapeOf(AsArray(array_));
  elements_ = PyArray_SIZE(AsArray(array_));
  extent_ = ExtentOf(AsArray(array_));
}

TensorView Operand::Claimed() const {
  return {type_, shape_, BytesAt(PyArray_DATA(AsArray(array_)), ByteSize(type_, elements_))};
}

void Operand::Gather() {
  if (PyArray_IS_C_CONTIGUOUS(AsArray(array_))) return;
  array_ = Stolen(PyArray_NewCopy(AsArray(array_), NPY_CORDER));
  is_callers_ = false;
}

nb::object Operand::Copy() const {
  return is_callers_ ? Stolen(PyArray_NewCopy(AsArray(array_), NPY_CORDER)) : array_;
}

void Operand::Pack(const Executor& executor) {
  if (!IsPacked(type_)) return;
  packed_ = std::make_unique_for_overwrite<uint8_t[]>(ByteSize(type_, elements_));
  python::Pack(type_, static_cast<const uint8_t*>(PyArray_DATA(AsArray(array_))), elements_,
               executor, packed_.get());
}

TensorView Operand::Whole() const {
  const void* const data = IsPacked(type_) ? packed_.get() : PyArray_DATA(AsArray(array_));
  return {type_, shape_, BytesAt(data, ByteSize(type_, elements_))};
}

}  // namespace quantd::python
