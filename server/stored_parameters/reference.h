// The reference of a stored set: "name@sha256:HEX", or "name" alone if only one set has it; and the
// name of the set's file, NAME@HEX.quantd.
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
  std::string hash;  // in lower case; empty: the only set with that name

  bool is_full() const { return !hash.empty(); }
  // "name@sha256:HEX", or "name".
  std::string Text() const;
  // REQUIRES: is_full().
  std::string FileName() const;
};

// Whether it is [a-z0-9][a-z0-9._-]{0,63}: not a path, not a hidden file, and valid in file names
// and log lines.
bool IsName(absl::string_view text);

// Returns INVALID_ARGUMENT for `field` if `text` is not a reference.
absl::StatusOr<Reference> ParseReference(absl::string_view text, absl::string_view field);
// Returns INVALID_ARGUMENT for `field` if `text` is not a name.
absl::Status CheckName(absl::string_view text, absl::string_view field);

// The reference of a file that FileName() names; nullopt for other files.
std::optional<Reference> ParseFileName(absl::string_view file);

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_REFERENCE_H_
