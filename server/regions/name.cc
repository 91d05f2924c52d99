#include "server/regions/name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace quantd::regions {

std::string NameError(absl::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxNameBytes) {
    return absl::StrCat("has ", name.size(), " bytes, at most ", kMaxNameBytes, " are possible");
  }
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  if (good && name.front() != '.') return "";
  return absl::StrCat("is '", name,
                      "', must be of A-Z, a-z, 0-9, '.', '_' and '-', and not begin with '.'");
}

}  // namespace quantd::regions
