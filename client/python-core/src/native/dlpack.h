// Tensors of other libraries, by the DLPack protocol of the Python array API.
#ifndef QUANTD_PYTHON_CORE_DLPACK_H_
#define QUANTD_PYTHON_CORE_DLPACK_H_

#include <string>

#include "numpy_api.h"

namespace quantd::python {

// An array that is a view of a tensor's memory and keeps it, or None when its elements are of a
// type that quantd lacks. Throws TypeError, naming the argument, for tensors that are not in this
// host's memory, that are packed, or that contradict themselves.
nb::object FromDlpack(nb::handle tensor, const std::string& name);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_DLPACK_H_
