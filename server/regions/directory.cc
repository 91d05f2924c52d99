#include "server/regions/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace quantd::regions {
namespace {

constexpr char kPrefix[] = "quantd-";

std::chrono::nanoseconds Nanoseconds(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

bool IsOldFile(const struct stat& status, std::chrono::nanoseconds age) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return S_ISREG(status.st_mode) && Nanoseconds(now) - Nanoseconds(status.st_ctim) > age;
}

bool RemoveIfLeft(int directory, const std::string& name, std::chrono::nanoseconds age) {
  struct stat named, opened;
  if (fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (!IsOldFile(named, age)) return false;
  const UniqueFd file = OpenBeneath(directory, name, O_RDONLY);
  if (!file.is_open() || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return false;
  // Checked again under the lock: the name may belong to another file now.
  if (fstat(file.get(), &opened) != 0 || !IsOldFile(opened, age)) return false;
  if (fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (named.st_dev != opened.st_dev || named.st_ino != opened.st_ino) return false;
  return unlinkat(directory, name.c_str(), 0) == 0;
}

}  // namespace

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

size_t RemoveLeftovers(int directory, std::chrono::nanoseconds age) {
  UniqueFd again(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const stream = again.is_open() ? fdopendir(again.get()) : nullptr;
  if (stream == nullptr) return 0;
  again.Release();  // the stream owns it now
  size_t removed = 0;
  while (const dirent* const entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (absl::StartsWith(name, kPrefix) && NameError(name).empty()) {
      removed += RemoveIfLeft(directory, name, age);
    }
  }
  closedir(stream);
  return removed;
}

}  // namespace quantd::regions
