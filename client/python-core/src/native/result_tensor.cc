#include "result_tensor.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "dtypes.h"
#include "packing.h"
#include "quantd/field_error.h"
#include "quantd/shape.h"
#include "result_memory.h"

namespace quantd::python {
namespace {

// The bytes of an array. REQUIRES: a plan has checked the shape.
size_t BytesOf(DataType type, const Shape& shape) {
  size_t bytes = static_cast<size_t>(std::max(Info(type).bits, 8)) / 8;
  for (const int64_t length : shape) bytes *= static_cast<size_t>(length);
  return bytes;
}

// In new memory, or at `data`, which belongs to `owner`.
nb::object NewArray(DataType type, const Shape& shape, void* data = nullptr,
                    nb::handle owner = {}) {
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  const ResultMemory memory(data == nullptr ? BytesOf(type, shape) : 0);
  nb::object array =
      Stolen(PyArray_NewFromDescr(&PyArray_Type, NewDtype(type), static_cast<int>(shape.size()),
                                  reinterpret_cast<const npy_intp*>(shape.data()), nullptr, data,
                                  data == nullptr ? 0 : NPY_ARRAY_CARRAY, nullptr));
  if (data != nullptr &&
      PyArray_SetBaseObject(AsArray(array), nb::borrow(owner).release().ptr()) < 0) {
    throw nb::python_error();
  }
  return array;
}

uint8_t* DataOf(nb::handle array) { return static_cast<uint8_t*>(PyArray_DATA(AsArray(array))); }

std::string DtypeName(nb::handle dtype) { return nb::cast<std::string>(nb::str(dtype)); }

std::string DtypeName(DataType type) {
  return DtypeName(nb::steal(reinterpret_cast<PyObject*>(NewDtype(type))));
}

}  // namespace

Output::Output(nb::handle out, nb::handle place) : given_(!out.is_none()), array_(nb::borrow(out)) {
  if (!given_ || PyArray_Check(out.ptr())) return;
  const nb::object found = place(out);
  array_ = found[0];
  region_ = nb::cast<std::string>(found[1]);
}

absl::Status Output::Check(const TensorLayout& y) const {
  if (!given_) return absl::OkStatus();
  PyArrayObject* const array = AsArray(array_);
  if (is_packed()) {
    const auto room = static_cast<uint64_t>(PyArray_NBYTES(array));
    if (room >= y.bytes) return absl::OkStatus();
    return FieldError("output.byte_size",
                      absl::StrCat("output.byte_size is ", room, ", y takes ", y.bytes, " bytes"));
  }
  if (TypeOf(array) != y.data_type) {
    const nb::object dtype = array_.attr("dtype");
    return FieldError("out",
                      absl::StrCat("out is ", DtypeName(dtype), ", y is ", DtypeName(y.data_type)));
  }
  if (ShapeOf(array) != y.shape) {
    return FieldError("out", absl::StrCat("out has shape ", ShapeString(ShapeOf(array)),
                                          ", y has shape ", ShapeString(y.shape)));
  }
  if (!PyArray_ISWRITEABLE(array)) return FieldError("out", "out is read-only");
  return absl::OkStatus();
}

absl::Status Output::CheckOverlap(const Operand& operand, uint64_t bytes) const {
  if (!given_ || bytes == 0) return absl::OkStatus();
  Extent extent = ExtentOf(AsArray(array_));
  if (is_packed()) extent.end = extent.begin + bytes;
  const Extent& other = operand.extent();
  if (!extent.Overlaps(other)) return absl::OkStatus();
  if (is_packed()) {
    return FieldError(
        "output", absl::StrCat("output, ", bytes, " bytes of region '", region_, "', overlaps the ",
                               other.end - other.begin, " bytes of ", operand.name()));
  }
  return FieldError("out",
                    absl::StrCat("out, the ", extent.end - extent.begin, " bytes at 0x",
                                 absl::Hex(extent.begin), ", overlaps ", operand.name(), ", the ",
                                 other.end - other.begin, " bytes at 0x", absl::Hex(other.begin)));
}

ResultTensor::ResultTensor(DataType type, const Shape& shape, const Output* output) : type_(type) {
  const nb::object out = output != nullptr && output->given() ? output->array() : nb::object();
  const bool in_region = out.is_valid() && output->is_packed();
  const bool in_array = out.is_valid() && !in_region;
  if (in_region && !IsPacked(type)) {
    target_ = NewArray(type, shape, DataOf(out), out);
  } else if (in_array && PyArray_ISCARRAY(AsArray(out))) {
    target_ = out;
  } else {
    target_ = NewArray(type, shape);
    if (in_array) returned_ = out;
  }
  const auto size = static_cast<size_t>(ByteSize(type, PyArray_SIZE(AsArray(target_))));
  if (!IsPacked(type)) {
    bytes_ = {DataOf(target_), size};
  } else if (in_region) {
    bytes_ = {DataOf(out), size};
  } else {
    packed_ = std::make_unique_for_overwrite<uint8_t[]>(size);
    bytes_ = {packed_.get(), size};
  }
}

void ResultTensor::Unpack(const Executor& executor) const {
  if (!IsPacked(type_)) return;
  python::Unpack(type_, bytes_.data(), PyArray_SIZE(AsArray(target_)), executor, DataOf(target_));
}

nb::object ResultTensor::Take() {
  if (!returned_.is_valid()) return std::move(target_);
  if (PyArray_CopyInto(AsArray(returned_), AsArray(target_)) < 0) throw nb::python_error();
  return std::move(returned_);
}

}  // namespace quantd::python
