// Names that nobody knows: which one was meant, and which are none of ours.
#ifndef QUANTD_SERVER_OPTIONS_NAMES_H_
#define QUANTD_SERVER_OPTIONS_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace quantd::server {

// The one of `names` that `wrong` most likely stands for: a third of its letters wrong at most, one
// at least; "" when there is none.
std::string MostLike(absl::string_view wrong, absl::Span<const absl::string_view> names);

// Whether a variable QUANTD_... belongs to others than the server's flags: the clients, this
// project's tests and scripts, or Kubernetes, which tells each container of the Services quantd and
// quantd-SOMETHING. `name` without QUANTD_.
bool IsOthersVariable(absl::string_view name, absl::string_view value);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_NAMES_H_
