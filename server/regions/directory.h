// The directory of regions, which others can write. It may contain anything: links, pipes, devices,
// folders.
#ifndef QUANTD_SERVER_REGIONS_DIRECTORY_H_
#define QUANTD_SERVER_REGIONS_DIRECTORY_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "server/net/unique_fd.h"

namespace quantd::regions {

inline constexpr size_t kMaxNameBytes = 255;

// Why `name` is not a valid name of a region; empty if it is valid: 1 to 255 of A-Z, a-z, 0-9, '.',
// '_' and '-', the first not a '.'. So it contains no path, and is not another name of a directory.
std::string NameError(absl::string_view name);

// `directory`: its descriptor. Never blocks, never follows a link, and never opens anything outside
// of the directory or on another file system. On failure the result is not open and errno is set.
// `flags`: O_RDONLY or O_RDWR. The caller must still check the kind of the file. REQUIRES: `name`
// has no "/".
UniqueFd OpenBeneath(int directory, const std::string& name, int flags);

// The time that a client may need between creating a file and locking it.
inline constexpr std::chrono::seconds kLeftoverAge{10};

// Removes the files of clients that were killed before they could remove them, and nothing else:
// those whose names begin with "quantd-", on which no process holds a lock (flock), and that have
// not changed for `age`. The clients here hold a lock as long as they live. Returns their number.
size_t RemoveLeftovers(int directory, std::chrono::nanoseconds age = kLeftoverAge);

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_DIRECTORY_H_
