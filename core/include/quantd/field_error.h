// Errors that name the field of the request.
//
//   return FieldError("scale", absl::StrCat("scale has ", n, " elements, x has ", d));
//
// The field is a payload of the status, so that a server can forward it to its client.
#ifndef QUANTD_FIELD_ERROR_H_
#define QUANTD_FIELD_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quantd {

// An INVALID_ARGUMENT (or `code`) whose field is `field`, a path such as "scale" or "x.raw_data".
// `message` is for people: it names the field and both numbers.
absl::Status FieldError(absl::string_view field, absl::string_view message,
                        absl::StatusCode code = absl::StatusCode::kInvalidArgument);

// The field of a status made by FieldError; empty if there is none.
std::string ErrorField(const absl::Status& status);

}  // namespace quantd

#endif  // QUANTD_FIELD_ERROR_H_
