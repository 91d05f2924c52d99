// Regions by name: which names there are, and how one is opened. The directory is shared with
// clients, so there may be anything in it: links, pipes, devices, folders.
#ifndef QUANTD_SERVER_REGIONS_OPEN_H_
#define QUANTD_SERVER_REGIONS_OPEN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/fd/unique_fd.h"

namespace quantd::regions {

inline constexpr size_t kMaxNameBytes = 255;

// Why it is no name of a region; empty for a good one: 1 to 255 of A-Z, a-z, 0-9, '.', '_' and '-',
// the first not a '.'. So it is no path, and no other way to say a directory.
std::string NameError(absl::string_view name);

// The file of that name in the directory, without following links, waiting for anybody or leaving
// the file system; else none, and errno says why. `flags`: O_RDONLY or O_RDWR. What kind of file it
// is must still be looked at. REQUIRES: NameError(name) is empty.
UniqueFd OpenBeneath(int directory, const std::string& name, int flags);

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_OPEN_H_
