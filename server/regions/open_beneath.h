// Opens files in, and lists, a directory that others can write. The directory may contain anything:
// links, pipes, devices, folders.
#ifndef QUANTD_SERVER_REGIONS_OPEN_BENEATH_H_
#define QUANTD_SERVER_REGIONS_OPEN_BENEATH_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/net/unique_fd.h"

namespace quantd {

// `directory`: its descriptor; if it is < 0, nothing is opened and errno is unchanged. Never
// blocks, never follows a link, and never opens anything outside of the directory or on another
// file system. On failure the result is not open and
// errno is set. `flags`: O_RDONLY or O_RDWR. The caller must still check the kind of the file.
// REQUIRES: `name` has no "/".
UniqueFd OpenBeneath(int directory, const std::string& name, int flags);

// Calls `visit` with the name of each entry that may be a file or a link, until it returns false.
// Returns an errno, or 0.
int ForEachName(int directory, absl::FunctionRef<bool(absl::string_view name)> visit);

}  // namespace quantd

#endif  // QUANTD_SERVER_REGIONS_OPEN_BENEATH_H_
