#include "files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "files/file_names.h"
#include "files/signals.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

void Advise(absl::Span<const uint8_t> bytes, int advice) {
  if (bytes.empty()) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t before = begin % page;
  madvise(reinterpret_cast<void*>(begin - before), bytes.size() + before, advice);
}

constexpr int kTries = 100;
constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;

absl::Status CannotWrite(absl::string_view path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must fail below, not wait for a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a regular file; save the tensor to a .npy or .safetensors"));
  }
  std::shared_ptr<MappedFile> file(new MappedFile());
  if (status.st_size > 0) {
    const auto size = static_cast<size_t>(status.st_size);
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      const int error = errno;
      close(descriptor);
      return absl::ErrnoToStatus(error, absl::StrCat("cannot map ", path));
    }
    file->bytes_ = {static_cast<const uint8_t*>(address), size};
    NameOnSignal(file->bytes_, path);
  }
  close(descriptor);
  return file;
}

void PopulateToRead(absl::Span<const uint8_t> bytes) { Advise(bytes, MADV_POPULATE_READ); }

void PopulateToWrite(absl::Span<uint8_t> bytes) { Advise(bytes, MADV_POPULATE_WRITE); }

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  ForgetMapping(bytes_);
  munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

absl::Status CheckMayWrite(const std::string& path, bool force) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    if (lstat(path.c_str(), &status) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, " is a broken link"));
    }
    const bool may = access(FolderOf(path).c_str(), W_OK | X_OK) == 0;
    return may ? absl::OkStatus() : CannotWrite(path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " exists and is not a regular file"));
  }
  if (force) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(path, " exists; --force overwrites it"));
}

// Returns 0, or an errno. A signal removes the file.
int OutputFile::OpenTemporary(const std::string& folder) {
  for (int tries = 1;; ++tries) {
    temporary_ = absl::StrCat(folder, "/.quantctl-", UniqueName(), ".tmp");
    RemoveOnSignal(temporary_);
    descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    if (descriptor_ >= 0) return 0;
    const int error = errno;
    KeepOnSignal(temporary_);
    temporary_.clear();
    if (error != EEXIST || tries == kTries) return error;
  }
}

absl::Status OutputFile::Create(const std::string& path, uint64_t size, bool force) {
  QUANTD_RETURN_IF_ERROR(CheckMayWrite(path, force));
  path_ = path;
  replace_ = force;
  // If the path is a link, its target is replaced, and the link stays.
  if (char* target = realpath(path.c_str(), nullptr); target != nullptr) {
    path_ = target;
    free(target);
  }
  if (const int error = OpenTemporary(FolderOf(path_)); error != 0) {
    return CannotWrite(path_, error);
  }
  return Allocate(size);
}

absl::Status OutputFile::CreateNameless(const std::string& path, uint64_t size) {
  path_ = FolderOf(path);
  descriptor_ = open(path_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, kMode);
  if (descriptor_ < 0) {  // not all file systems support files without a name
    if (const int error = OpenTemporary(path_); error != 0) return CannotWrite(path_, error);
    unlink(temporary_.c_str());
    KeepOnSignal(temporary_);
    temporary_.clear();
  }
  return Allocate(size);
}

absl::Status OutputFile::Allocate(uint64_t size) {
  if (size == 0) return absl::OkStatus();
  // The space is allocated first: writing to a mapping on a full disk would kill the program.
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
  // Without --force, a file that was created meanwhile is not replaced, if the file system can
  // tell.
  int failed =
      replace_ ? std::rename(temporary_.c_str(), path_.c_str())
               : renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  if (failed != 0 && !replace_ && (errno == EINVAL || errno == ENOSYS)) {
    failed = std::rename(temporary_.c_str(), path_.c_str());
  }
  if (failed != 0) return CannotWrite(path_, errno);
  KeepOnSignal(temporary_);
  temporary_.clear();
  SyncFolder(FolderOf(path_));
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
