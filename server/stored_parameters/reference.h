// What a stored set is called: "name@sha256:HEX", or "name" alone where one set has it; and the
// file that it is in, NAME@HEX.quantd.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_REFERENCE_H_
#define QUANTD_SERVER_STORED_PARAMETERS_REFERENCE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::stored_parameters {

inline constexpr size_t kMaxNameBytes = 64;
inline constexpr size_t kHashDigits = 64;

struct Reference {
  std::string name;
  std::string hash;  // in lower case; empty: whichever set has the name

  bool is_full() const { return !hash.empty(); }
  // "name@sha256:HEX", or "name".
  std::string Text() const;
  // REQUIRES: is_full().
  std::string FileName() const;
};

// Whether it is [a-z0-9][a-z0-9._-]{0,63}: no path, no hidden file, nothing that a name of a file
// or a line of a log could not hold.
bool IsName(absl::string_view text);

// INVALID_ARGUMENT of `field` when `text` is not a reference.
absl::StatusOr<Reference> ParseReference(absl::string_view text, absl::string_view field);
// INVALID_ARGUMENT of `field` when it is no name.
absl::Status CheckName(absl::string_view text, absl::string_view field);

// Of a file that FileName() names; nothing of any other.
std::optional<Reference> ParseFileName(absl::string_view file);

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_REFERENCE_H_
