// The structures of DLPack 1.1 (dlpack.h), which Debian does not have.
#include "dlpack.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "dtypes.h"
#include "quantd/shape.h"

namespace quantd::python {
namespace {

struct Device {
  int32_t type;
  int32_t id;
};
struct Type {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  Type dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct Versioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(Versioned*);
  uint64_t flags;
  Tensor tensor;
};
constexpr uint64_t kPadded = 1 << 2;  // types narrower than a byte use one byte each

// Devices whose memory this process may read.
constexpr int32_t kCpu = 1;
constexpr int32_t kCudaHost = 3;
constexpr int32_t kRocmHost = 11;

bool IsHost(int64_t device) { return device == kCpu || device == kCudaHost || device == kRocmHost; }

struct TypeRow {
  uint8_t code;
  uint8_t bits;
  DataType type;
};
constexpr TypeRow kTypes[] = {
    {0, 32, DataType::kInt32},        {0, 16, DataType::kInt16},
    {0, 8, DataType::kInt8},          {0, 4, DataType::kInt4},
    {0, 2, DataType::kInt2},          {1, 16, DataType::kUint16},
    {1, 8, DataType::kUint8},         {1, 4, DataType::kUint4},
    {1, 2, DataType::kUint2},         {2, 32, DataType::kFloat},
    {2, 16, DataType::kFloat16},      {4, 16, DataType::kBfloat16},
    {10, 8, DataType::kFloat8E4M3Fn}, {11, 8, DataType::kFloat8E4M3Fnuz},
    {12, 8, DataType::kFloat8E5M2},   {13, 8, DataType::kFloat8E5M2Fnuz},
    {14, 8, DataType::kFloat8E8M0},   {15, 6, DataType::kFloat6E2M3},
    {16, 6, DataType::kFloat6E3M2},   {17, 4, DataType::kFloat4E2M1},
};

std::optional<DataType> TypeOf(const Type& type) {
  for (const TypeRow& row : kTypes) {
    if (row.code == type.code && row.bits == type.bits) return row.type;
  }
  return std::nullopt;
}

[[noreturn]] void Refuse(const std::string& text) { throw nb::type_error(text.c_str()); }

void CheckDevice(int64_t type, int64_t id, const std::string& name) {
  if (IsHost(type)) return;
  Refuse(absl::StrCat(name, " is on DLPack device ", type, ", number ", id,
                      ", quantd reads device ", kCpu,
                      ", the host's memory: copy it there first, for example with .cpu()"));
}

int64_t ToInteger(const nb::object& value) {
  const nb::object integer = Stolen(PyNumber_Index(value.ptr()));
  const int64_t number = PyLong_AsLongLong(integer.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

nb::object AskForCapsule(nb::handle tensor) {
  const nb::object method = tensor.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 1));
  } catch (nb::python_error& error) {
    // Before version 1 the method did not have this argument.
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method();
}

template <typename Any>
void Delete(Any* managed) {
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

constexpr char kOwner[] = "quantd_core.dlpack";
template <typename Any>
void DeleteOwned(PyObject* capsule) {
  Delete(static_cast<Any*>(PyCapsule_GetPointer(capsule, kOwner)));
}

// Takes ownership of the contents of a capsule with that name; the returned object deletes them.
template <typename Any>
nb::object Take(nb::handle capsule, const char* name, const char* used_name, Any** managed) {
  *managed = static_cast<Any*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (*managed == nullptr) throw nb::python_error();
  nb::object owner = Stolen(PyCapsule_New(*managed, kOwner, DeleteOwned<Any>));
  if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw nb::python_error();
  return owner;
}

// Checks a tensor before its memory is read.
void Check(const Tensor& tensor, bool padded, const std::string& name) {
  CheckDevice(tensor.device.type, tensor.device.id, name);
  if (tensor.ndim < 0 || tensor.ndim > NPY_MAXDIMS ||
      (tensor.ndim > 0 && tensor.shape == nullptr)) {
    Refuse(
        absl::StrCat(name, " has ", tensor.ndim, " dimensions, numpy has at most ", NPY_MAXDIMS));
  }
  if (tensor.dtype.bits < 8 && !(padded && tensor.dtype.lanes == 1)) {
    Refuse(absl::StrCat(name, " has elements of ", tensor.dtype.bits,
                        " bits that share bytes, quantd takes those of ml_dtypes, of a byte each"));
  }
}

nb::object ArrayOf(const Tensor& tensor, DataType type, const nb::object& owner,
                   const std::string& name) {
  const int64_t item = (Info(type).bits + 7) / 8;
  const Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  const absl::StatusOr<int64_t> elements = ElementCount(shape, name);
  if (!elements.ok()) Refuse(std::string(elements.status().message()));
  absl::InlinedVector<npy_intp, 6> strides;
  for (int i = 0; tensor.strides != nullptr && i < tensor.ndim; ++i) {
    npy_intp stride = 0;
    npy_intp reach = 0;
    if (__builtin_mul_overflow(tensor.strides[i], item, &stride) ||
        __builtin_mul_overflow(stride, shape[static_cast<size_t>(i)], &reach)) {
      Refuse(absl::StrCat(name, " has stride ", tensor.strides[i], " in dimension ", i,
                          " of length ", shape[static_cast<size_t>(i)],
                          ", which is more than memory"));
    }
    strides.push_back(stride);
  }
  if (*elements == 0) {
    return Stolen(PyArray_NewFromDescr(&PyArray_Type, NewDtype(type), tensor.ndim,
                                       reinterpret_cast<const npy_intp*>(shape.data()), nullptr,
                                       nullptr, 0, nullptr));
  }
  if (tensor.data == nullptr) {
    Refuse(absl::StrCat(name, " has ", *elements, " elements at address 0"));
  }
  nb::object array = Stolen(PyArray_NewFromDescr(
      &PyArray_Type, NewDtype(type), tensor.ndim, reinterpret_cast<const npy_intp*>(shape.data()),
      tensor.strides == nullptr ? nullptr : strides.data(),
      static_cast<char*>(tensor.data) + tensor.byte_offset, 0, nullptr));
  if (PyArray_SetBaseObject(AsArray(array), nb::borrow(owner).release().ptr()) < 0) {
    throw nb::python_error();
  }
  return array;
}

}  // namespace

nb::object FromDlpack(nb::handle tensor, const std::string& name) {
  // The tensor's library might have to copy it from its device, so this is checked first.
  const nb::object device = tensor.attr("__dlpack_device__")();
  CheckDevice(ToInteger(device[0]), ToInteger(device[1]), name);
  const nb::object capsule = AskForCapsule(tensor);
  nb::object owner;
  const Tensor* view = nullptr;
  bool padded = false;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    Versioned* managed = nullptr;
    owner = Take(capsule, "dltensor_versioned", "used_dltensor_versioned", &managed);
    // In other major versions only the deleter is in the same place.
    if (managed->major != 1) {
      Refuse(absl::StrCat(name, " is of DLPack ", managed->major, ", quantd reads version 1"));
    }
    padded = (managed->flags & kPadded) != 0;
    view = &managed->tensor;
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    Managed* managed = nullptr;
    owner = Take(capsule, "dltensor", "used_dltensor", &managed);
    view = &managed->tensor;
  } else {
    Refuse(absl::StrCat(name, ": __dlpack__ returned no DLPack capsule, or a used one"));
  }
  const std::optional<DataType> type = TypeOf(view->dtype);
  if (!type.has_value()) return nb::none();
  Check(*view, padded, name);
  if (view->dtype.lanes != 1) return nb::none();
  return ArrayOf(*view, *type, owner, name);
}

}  // namespace quantd::python
