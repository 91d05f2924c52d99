#include "arguments.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "quantd/field_error.h"
#include "quantd/shared_executor.h"

namespace quantd::python {

int64_t ReadInteger(nb::handle value, const char* name) {
  const nb::object integer = Stolen(PyNumber_Index(value.ptr()));
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (overflow != 0) {
    const std::string text = nb::cast<std::string>(nb::str(integer));
    throw nb::value_error(
        absl::StrCat(name, " is ", text, ", which is not a 64-bit integer").c_str());
  }
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

bool IsTrue(nb::handle value) {
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

void Ready(Operand& operand) {
  operand.Gather();
  operand.Pack(SharedExecutor(1));
}

void CheckStatus(const absl::Status& status, const nb::object& fail) {
  if (status.ok()) return;
  const absl::string_view message = status.message();
  const std::string field = ErrorField(status);
  const nb::object error =
      fail(static_cast<int>(status.code()), nb::str(message.data(), message.size()), field);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

}  // namespace quantd::python
