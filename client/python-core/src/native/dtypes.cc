#include "dtypes.h"

#include <array>
#include <cstddef>

namespace quantd::python {
namespace {

struct Row {
  int numpy_type = -1;
  PyArray_Descr* dtype = nullptr;  // never released
};
std::array<Row, kDataTypes.size()> rows;

Row& RowOf(DataType type) { return rows[static_cast<size_t>(&Info(type) - kDataTypes.data())]; }

}  // namespace

void SetDtypes(const nb::list& dtypes) {
  for (nb::handle pair : dtypes) {
    const DataTypeInfo* const info = FindDataType(nb::cast<int>(pair[0]));
    const nb::object dtype = pair[1];
    if (info == nullptr || !PyArray_DescrCheck(dtype.ptr())) throw nb::type_error("no dtype");
    Row& row = RowOf(info->type);
    if (row.dtype != nullptr) continue;
    row.dtype = reinterpret_cast<PyArray_Descr*>(nb::object(dtype).release().ptr());
    row.numpy_type = row.dtype->type_num;
  }
}

std::optional<DataType> TypeOf(PyArrayObject* array) {
  const int numpy_type = PyArray_TYPE(array);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].numpy_type != numpy_type || rows[i].dtype == nullptr) continue;
    if (!PyArray_ISNOTSWAPPED(array)) return std::nullopt;
    return kDataTypes[i].type;
  }
  return std::nullopt;
}

PyArray_Descr* NewDtype(DataType type) {
  PyArray_Descr* const dtype = RowOf(type).dtype;
  Py_INCREF(dtype);
  return dtype;
}

}  // namespace quantd::python
