#include "server/regions/leftovers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <string>

#include "absl/strings/match.h"
#include "server/regions/name.h"
#include "server/regions/open_beneath.h"

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

size_t RemoveLeftovers(int directory, std::chrono::nanoseconds age) {
  size_t removed = 0;
  ForEachName(directory, [&](absl::string_view name) {
    if (absl::StartsWith(name, kPrefix) && NameError(name).empty()) {
      removed += RemoveIfLeft(directory, std::string(name), age);
    }
    return true;
  });
  return removed;
}

}  // namespace quantd::regions
