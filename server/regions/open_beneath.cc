#include "server/regions/open_beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace quantd {

UniqueFd OpenBeneath(int directory, const std::string& name, int flags) {
  // errno is still that of the failed open.
  if (directory < 0) return UniqueFd();
  // O_NONBLOCK: neither a pipe without a writer nor a lease can block this.
  flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  open_how how = {};
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  how.flags = static_cast<uint64_t>(flags);
  // EAGAIN: something was renamed meanwhile, for example because a ConfigMap changed.
  for (int attempt = 0; attempt < 100; ++attempt) {
    UniqueFd opened(
        static_cast<int>(syscall(SYS_openat2, directory, name.c_str(), &how, sizeof(how))));
    if (opened.is_open()) return opened;
    if (errno == EAGAIN || errno == EINTR) continue;
    if (errno != ENOSYS && errno != EPERM) return opened;
    break;
  }
  // For kernels before 5.6 and for filters that block the call. A name without '/' leaves little to
  // resolve: without links this is as safe.
  return UniqueFd(openat(directory, name.c_str(), flags));
}

int ForEachName(int directory, absl::FunctionRef<bool(absl::string_view name)> visit) {
  UniqueFd again(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again.is_open()) return errno;
  DIR* const stream = fdopendir(again.get());
  if (stream == nullptr) return errno;
  again.Release();  // the stream owns it now
  errno = 0;
  for (const dirent* entry = readdir(stream); entry != nullptr; entry = readdir(stream)) {
    const bool may_be_file =
        entry->d_type == DT_REG || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
    if (may_be_file && !visit(entry->d_name)) break;
    errno = 0;
  }
  const int error = errno;
  closedir(stream);
  return error;
}

}  // namespace quantd
