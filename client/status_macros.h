// Returns from a function at the first error, for functions that return a Status or a StatusOr.
//
//   QUANTD_RETURN_IF_ERROR(file.Read(0, head));
//   QUANTD_ASSIGN_OR_RETURN(const TensorFile file, OpenTensorFile(path));
//
// For sources only: client/cpp does not install it.
#ifndef QUANTD_CLIENT_STATUS_MACROS_H_
#define QUANTD_CLIENT_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define QUANTD_RETURN_IF_ERROR(...)                \
  do {                                             \
    absl::Status quantd_status = (__VA_ARGS__);    \
    if (!quantd_status.ok()) return quantd_status; \
  } while (false)

// Several statements: not the body of an `if` without braces. The first argument has no commas.
#define QUANTD_ASSIGN_OR_RETURN(lhs, ...) \
  QUANTD_ASSIGN_OR_RETURN_AS(QUANTD_STATUS_NAME(__LINE__), lhs, (__VA_ARGS__))

// NOLINTBEGIN(bugprone-macro-parentheses): a name, and a declaration or what is assigned to
#define QUANTD_ASSIGN_OR_RETURN_AS(result, lhs, expr)  \
  auto result = expr;                                  \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)
#define QUANTD_STATUS_NAME(line) QUANTD_STATUS_NAME_OF(line)
#define QUANTD_STATUS_NAME_OF(line) quantd_result_##line

#endif  // QUANTD_CLIENT_STATUS_MACROS_H_
