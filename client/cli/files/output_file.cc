#include "files/output_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "files/signals.h"

namespace quantd::cli {
namespace {

constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;

absl::Status CannotWrite(absl::string_view path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

}  // namespace

absl::Status CheckMayWrite(const std::string& path, const OverwriteRules& rules) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    if (lstat(path.c_str(), &status) != 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, " is a broken link"));
  }
  const FileId id{status.st_dev, status.st_ino};
  if (std::find(rules.inputs.begin(), rules.inputs.end(), id) != rules.inputs.end()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is the input; write to another file"));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " exists and is not a regular file"));
  }
  if (rules.force) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(path, " exists; --force overwrites it"));
}

absl::Status OutputFile::Create(const std::string& path, uint64_t size,
                                const OverwriteRules& rules) {
  if (absl::Status status = CheckMayWrite(path, rules); !status.ok()) return status;
  path_ = path;
  replace_ = rules.force;
  // A link stays one: what it points at is replaced.
  if (char* target = realpath(path.c_str(), nullptr); target != nullptr) {
    path_ = target;
    free(target);
  }
  static int files = 0;
  temporary_ = absl::StrCat(FolderOf(path_), "/.quantctl-", getpid(), "-", ++files, ".tmp");
  RemoveOnSignal(temporary_);
  descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (descriptor_ < 0) {
    const int error = errno;
    KeepOnSignal(temporary_);
    temporary_.clear();
    return CannotWrite(path_, error);
  }
  return Allocate(size);
}

absl::Status OutputFile::CreateNameless(const std::string& path, uint64_t size) {
  path_ = FolderOf(path);
  descriptor_ = open(path_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, kMode);
  if (descriptor_ < 0) {  // not every file system has nameless files
    std::string name = absl::StrCat(path_, "/.quantctl-XXXXXX");
    descriptor_ = mkostemp(name.data(), O_CLOEXEC);
    if (descriptor_ < 0) return CannotWrite(path_, errno);
    unlink(name.c_str());
  }
  return Allocate(size);
}

absl::Status OutputFile::Allocate(uint64_t size) {
  if (size == 0) return absl::OkStatus();
  // The space is taken first: writing to a mapping of a full disk would kill the program.
  int error = size > INT64_MAX ? EFBIG : 0;
  if (error == 0) error = posix_fallocate(descriptor_, 0, static_cast<off_t>(size));
  if (error == 0) {
    void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (address != MAP_FAILED) {
      bytes_ = {static_cast<uint8_t*>(address), size};
      NameOnSignal(bytes_, path_);
      return absl::OkStatus();
    }
    error = errno;
  }
  return CannotWrite(absl::StrCat(size, " bytes to ", path_), error);
}

absl::Status OutputFile::Sync() {
  if (!bytes_.empty()) {
    ForgetMapping(bytes_);
    munmap(bytes_.data(), bytes_.size());
    bytes_ = {};
  }
  if (fsync(descriptor_) != 0) return CannotWrite(path_, errno);
  return absl::OkStatus();
}

absl::Status OutputFile::Publish() {
  // Without --force a file that came meanwhile is left alone, where the file system can tell.
  int failed =
      replace_ ? std::rename(temporary_.c_str(), path_.c_str())
               : renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  if (failed != 0 && !replace_ && (errno == EINVAL || errno == ENOSYS)) {
    failed = std::rename(temporary_.c_str(), path_.c_str());
  }
  if (failed != 0) return CannotWrite(path_, errno);
  KeepOnSignal(temporary_);
  temporary_.clear();
  // The name is on the disk when the folder is. Not every file system can say so.
  if (const int folder = open(FolderOf(path_).c_str(), O_RDONLY | O_CLOEXEC); folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

void OutputFile::Withdraw() {
  if (!replace_) unlink(path_.c_str());
}

OutputFile::~OutputFile() {
  if (!bytes_.empty()) {
    ForgetMapping(bytes_);
    munmap(bytes_.data(), bytes_.size());
  }
  if (descriptor_ >= 0) close(descriptor_);
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  KeepOnSignal(temporary_);
}

}  // namespace quantd::cli
