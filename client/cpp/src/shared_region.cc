#include "quantd/client/shared_region.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quantd::client {
namespace {

constexpr char kDirectoryVariable[] = "QUANTD_SHARED_MEMORY_DIR";

std::string NewName() {
  std::random_device random;
  return absl::StrCat("quantd-", getpid(), "-", absl::Hex(random(), absl::kZeroPad8),
                      absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace

absl::StatusOr<SharedRegion> SharedRegion::Create(size_t bytes, std::string directory) {
  if (directory.empty()) {
    const char* const found = std::getenv(kDirectoryVariable);
    if (found == nullptr || *found == '\0') {
      return absl::InvalidArgumentError(
          absl::StrCat("no directory for shared memory: give one, or set ", kDirectoryVariable));
    }
    directory = found;
  }
  SharedRegion region;
  region.name_ = NewName();
  std::string path = absl::StrCat(directory, "/", region.name_);
  region.file_ =
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (region.file_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat("can't create ", path));
  region.path_ = std::move(path);  // from now on the region removes it
  if (flock(region.file_, LOCK_EX | LOCK_NB) != 0) return absl::ErrnoToStatus(errno, "flock");
  // The server may run as another user of the directory's group, whatever umask this process has.
  if (fchmod(region.file_, 0660) != 0) return absl::ErrnoToStatus(errno, "fchmod");
  int error;
  do {
    error = posix_fallocate(region.file_, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error != 0) {
    return absl::ErrnoToStatus(
        error, absl::StrCat("no room for ", bytes, " bytes of shared memory in ", directory));
  }
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region.file_, 0);
  if (data == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  region.data_ = static_cast<uint8_t*>(data);
  region.size_ = bytes;
  return region;
}

SharedRegion::SharedRegion(SharedRegion&& other) noexcept { *this = std::move(other); }

SharedRegion& SharedRegion::operator=(SharedRegion&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(name_, other.name_);
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedRegion::~SharedRegion() {
  if (data_ != nullptr) munmap(data_, size_);
  if (!path_.empty()) unlink(path_.c_str());
  if (file_ >= 0) close(file_);
}

}  // namespace quantd::client
