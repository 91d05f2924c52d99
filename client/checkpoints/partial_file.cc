#include "checkpoints/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"
#include "files/signals.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

constexpr mode_t kMode = 0666;
constexpr uint64_t kPiece = 1 << 20;

// Errors that mean that a file system can't copy by itself.
bool CannotCopy(int error) {
  return error == EXDEV || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP ||
         error == EBADF || error == ETXTBSY || error == EPERM;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PartialFile>> PartialFile::Create(const std::string& temporary,
                                                                 const std::string& path,
                                                                 uint32_t mode) {
  std::unique_ptr<PartialFile> file(new PartialFile(temporary, path));
  file->mode_ = mode;
  cli::RemoveOnSignal(temporary);
  for (;;) {
    file->descriptor_ =
        open(temporary.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode == 0 ? kMode : 0600);
    if (file->descriptor_ < 0) return file->Cannot(errno);
    // Another process may be writing the same file (ConvertOptions::shards).
    if (flock(file->descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(std::exchange(file->descriptor_, -1));
      return absl::AlreadyExistsError(absl::StrCat("another process is making ", path));
    }
    struct stat ours, there;
    const bool same = fstat(file->descriptor_, &ours) == 0 &&
                      stat(temporary.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
                      ours.st_ino == there.st_ino;
    if (same) break;
    close(std::exchange(file->descriptor_, -1));  // it was renamed to its final name meanwhile
  }
  if (ftruncate(file->descriptor_, 0) != 0) return file->Cannot(errno);
  return file;
}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0 && !finished_) unlink(temporary_.c_str());
  if (descriptor_ >= 0) close(descriptor_);
  if (!finished_) cli::KeepOnSignal(temporary_);
}

absl::Status PartialFile::Cannot(int error) const {
  return FileError(error, absl::StrCat("cannot write ", path_));
}

absl::Status PartialFile::Write(uint64_t offset, absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return Cannot(put < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return absl::OkStatus();
}

absl::Status PartialFile::Write(uint64_t offset, absl::string_view text) {
  return Write(offset, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

absl::Status PartialFile::Copy(const OpenFile& from, uint64_t from_offset, uint64_t offset,
                               uint64_t bytes) {
  auto in = static_cast<off64_t>(from_offset), out = static_cast<off64_t>(offset);
  while (bytes > 0) {
    const ssize_t copied = copy_file_range(from.descriptor(), &in, descriptor_, &out, bytes, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && !CannotCopy(errno)) return Cannot(errno);
    if (copied <= 0) break;  // at the end of the file, reading reports the error
    bytes -= static_cast<uint64_t>(copied);
  }
  std::vector<uint8_t> buffer(std::min(bytes, kPiece));
  while (bytes > 0) {
    const absl::Span<uint8_t> piece =
        absl::MakeSpan(buffer).first(std::min<uint64_t>(bytes, buffer.size()));
    QUANTD_RETURN_IF_ERROR(from.Read(static_cast<uint64_t>(in), piece));
    QUANTD_RETURN_IF_ERROR(Write(static_cast<uint64_t>(out), piece));
    in += static_cast<off64_t>(piece.size());
    out += static_cast<off64_t>(piece.size());
    bytes -= piece.size();
  }
  return absl::OkStatus();
}

absl::Status PartialFile::Finish(uint64_t size) {
  if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) return Cannot(errno);
  if (mode_ != 0 && fchmod(descriptor_, mode_) != 0) return Cannot(errno);
  if (fsync(descriptor_) != 0) return Cannot(errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return Cannot(errno);
  cli::KeepOnSignal(temporary_);
  finished_ = true;
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& temporary, const std::string& path,
                       absl::string_view text, uint32_t mode) {
  QUANTD_ASSIGN_OR_RETURN(const std::unique_ptr<PartialFile> file,
                          PartialFile::Create(temporary, path, mode));
  absl::Status status = file->Write(0, text);
  return status.ok() ? file->Finish(text.size()) : status;
}

}  // namespace quantd::checkpoints
