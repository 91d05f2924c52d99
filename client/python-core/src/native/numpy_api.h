// numpy's C API, for every file but module.cc, which loads it.
#ifndef QUANTD_PYTHON_CORE_NUMPY_API_H_
#define QUANTD_PYTHON_CORE_NUMPY_API_H_

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>  // here, so that every file has the same casters

#define PY_ARRAY_UNIQUE_SYMBOL quantd_core_numpy_api
#ifndef QUANTD_LOADS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

namespace quantd::python {

namespace nb = nanobind;

inline PyArrayObject* AsArray(nb::handle object) {
  return reinterpret_cast<PyArrayObject*>(object.ptr());
}

// Takes ownership of a new reference. If it is null, throws the Python error that is set.
inline nb::object Stolen(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_NUMPY_API_H_
