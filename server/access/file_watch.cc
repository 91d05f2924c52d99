#include "server/access/file_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quantd::access {
namespace {

constexpr int kMostDoublings = 6;

}  // namespace

void FileWatch::Add(std::vector<std::string> paths, std::function<bool()> changed) {
  const std::string stamp = Stamp(paths);
  groups_.push_back({std::move(paths), std::move(changed), stamp, stamp});
}

std::string FileWatch::Stamp(const std::vector<std::string>& paths) {
  std::string stamp;
  for (const std::string& path : paths) {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) {
      absl::StrAppend(&stamp, "error ", errno, ";");
      continue;
    }
    absl::StrAppend(&stamp, info.st_dev, " ", info.st_ino, " ", info.st_size, " ",
                    info.st_mtim.tv_sec, " ", info.st_mtim.tv_nsec, " ");
    // st_ctim, because a file can be made readable, and its modification time can be set back.
    absl::StrAppend(&stamp, info.st_ctim.tv_sec, " ", info.st_ctim.tv_nsec, ";");
  }
  return stamp;
}

void FileWatch::Look() {
  const bool reread = reread_.exchange(false);
  for (Group& group : groups_) {
    std::string stamp = Stamp(group.paths);
    const bool rests = stamp == std::exchange(group.seen, stamp);
    const bool again = rests && group.looks > 0 && --group.looks == 0;
    if (!reread && !again && (!rests || stamp == group.read)) continue;
    group.read = std::move(stamp);
    group.failures = group.changed() ? 0 : std::min(group.failures + 1, kMostDoublings);
    group.looks = group.failures == 0 ? 0 : 1 << group.failures;
  }
}

}  // namespace quantd::access
