// The numpy dtype of each data type. Python sets them once, when the module is first used.
#ifndef QUANTD_PYTHON_CORE_DTYPES_H_
#define QUANTD_PYTHON_CORE_DTYPES_H_

#include <optional>

#include "numpy_api.h"
#include "quantd/data_type.h"

namespace quantd::python {

// `dtypes` is a list of pairs: a number of DataType, and a dtype in native byte order.
void SetDtypes(const nb::list& dtypes);

// The type of an array's elements; nullopt if quantd does not have it, or they are byte-swapped.
std::optional<DataType> TypeOf(PyArrayObject* array);

// A new reference to the dtype of a type.
PyArray_Descr* NewDtype(DataType type);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_DTYPES_H_
