// Regions by name: which names there are.
#ifndef QUANTD_SERVER_REGIONS_NAME_H_
#define QUANTD_SERVER_REGIONS_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quantd::regions {

inline constexpr size_t kMaxNameBytes = 255;

// Why it is no name of a region; empty for a good one: 1 to 255 of A-Z, a-z, 0-9, '.', '_' and '-',
// the first not a '.'. So it is no path, and no other way to say a directory.
std::string NameError(absl::string_view name);

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_NAME_H_
