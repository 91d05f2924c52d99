// What the operations' arguments and errors have in common.
#ifndef QUANTD_PYTHON_CORE_ARGUMENTS_H_
#define QUANTD_PYTHON_CORE_ARGUMENTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "numpy_api.h"
#include "operand.h"

namespace quantd::python {

// Whatever has __index__; of what int64 does not hold, a ValueError that names the argument.
int64_t ReadInteger(nb::handle value, const char* name);

bool IsTrue(nb::handle value);

// Gathers and packs an operand that is read before, or without, a plan.
void Ready(Operand& operand);

// Throws what fail(code, message, field), a Python function, makes of a status that is not OK.
void CheckStatus(const absl::Status& status, const nb::object& fail);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_ARGUMENTS_H_
