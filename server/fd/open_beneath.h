// Opens a file of a directory that others can write, and lists its names: there may be anything in
// it, such as links, pipes, devices and folders.
#ifndef QUANTD_SERVER_FD_OPEN_BENEATH_H_
#define QUANTD_SERVER_FD_OPEN_BENEATH_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/fd/unique_fd.h"

namespace quantd {

enum class Links : uint8_t {
  kRefused,  // nor does the file lie in another file system
  kInside,   // followed as long as they stay beneath the directory
};

// `directory`: its descriptor; < 0: none, and errno stays. Nothing that it finds makes it wait, and
// nothing outside the directory is opened. Not open, with errno. `flags`: O_RDONLY or O_RDWR. What
// kind of file it is must still be looked at. REQUIRES: the name has no "/".
UniqueFd OpenBeneath(int directory, const std::string& name, int flags, Links links);

// Calls `visit` with every name that may be a file's or a link's, until it returns false. Returns
// an errno; 0: none.
int ForEachName(int directory, absl::FunctionRef<bool(absl::string_view name)> visit);

}  // namespace quantd

#endif  // QUANTD_SERVER_FD_OPEN_BENEATH_H_
