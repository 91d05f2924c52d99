// The names of regions: which are valid.
#ifndef QUANTD_SERVER_REGIONS_NAME_H_
#define QUANTD_SERVER_REGIONS_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quantd::regions {

inline constexpr size_t kMaxNameBytes = 255;

// Why `name` is not a valid name of a region; empty if it is valid: 1 to 255 of A-Z, a-z, 0-9, '.',
// '_' and '-', the first not a '.'. So it contains no path, and is not another name of a directory.
std::string NameError(absl::string_view name);

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_NAME_H_
