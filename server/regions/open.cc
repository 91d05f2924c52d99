// See open.h.
#include "server/regions/open.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

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

UniqueFd OpenBeneath(int directory, const std::string& name, int flags) {
  // O_NONBLOCK: neither a pipe without a writer nor a lease makes this wait.
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  UniqueFd opened(
      static_cast<int>(syscall(SYS_openat2, directory, name.c_str(), &how, sizeof(how))));
  if (opened.is_open()) return opened;
  // Kernels before 5.6 and filters that do not know the call. A name that is no path leaves little
  // to resolve, so it is as safe without.
  if (errno != ENOSYS && errno != EPERM) return opened;
  return UniqueFd(openat(directory, name.c_str(), static_cast<int>(how.flags)));
}

}  // namespace quantd::regions
