// Reads tensors of other libraries through the DLPack protocol of the Python array API.
#ifndef QUANTD_PYTHON_CORE_DLPACK_H_
#define QUANTD_PYTHON_CORE_DLPACK_H_

#include <string>

#include "numpy_api.h"

namespace quantd::python {

// An array that views a tensor's memory and keeps the tensor alive, or None if quantd does not have
// its element type. Throws TypeError, with the argument's name, for tensors that are not in host
// memory, are packed, or are inconsistent.
nb::object FromDlpack(nb::handle tensor, const std::string& name);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_DLPACK_H_
