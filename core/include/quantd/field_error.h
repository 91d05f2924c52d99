// Errors that name the request's field.
//
//   return FieldError("scale", absl::StrCat("scale has ", n, " elements, x has ", d));
//
// The field travels as a payload of the status, so that a server can pass it on to its client.
#ifndef QUANTD_FIELD_ERROR_H_
#define QUANTD_FIELD_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quantd {

// An INVALID_ARGUMENT (or `code`) whose field is `field`, a path such as "scale" or "x.raw_data".
// `message` is for a person: it names the field and both numbers.
absl::Status FieldError(absl::string_view field, absl::string_view message,
                        absl::StatusCode code = absl::StatusCode::kInvalidArgument);

// The field of a status made by FieldError; empty when it has none.
std::string ErrorField(const absl::Status& status);

}  // namespace quantd

#endif  // QUANTD_FIELD_ERROR_H_
