// Shared by the arguments and errors of all operations.
#ifndef QUANTD_PYTHON_CORE_ARGUMENTS_H_
#define QUANTD_PYTHON_CORE_ARGUMENTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "numpy_api.h"
#include "operand.h"

namespace quantd::python {

// Reads any object with __index__; raises a ValueError, with the argument's name, if int64 can't
// hold it.
int64_t ReadInteger(nb::handle value, const char* name);

bool IsTrue(nb::handle value);

// Gathers and packs an operand that is read before or without a plan.
void Ready(Operand& operand);

// Throws the exception that fail(code, message, field), a Python function, makes of an error
// status.
void CheckStatus(const absl::Status& status, const nb::object& fail);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_ARGUMENTS_H_
