#include "checkpoints/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

void Fill(const struct stat& status, InputFile* file) {
  file->size = static_cast<uint64_t>(status.st_size);
  file->mode = status.st_mode & 0777;
  file->modified_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

absl::StatusOr<InputFile> InputFile::Of(const std::string& path, const std::string& name) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    return FileError(errno, absl::StrCat("cannot open ", path));
  }
  if (!S_ISREG(status.st_mode)) {
    return ContentError(absl::StrCat(path, " is not a regular file"));
  }
  InputFile file;
  file.path = path;
  file.name = name;
  Fill(status, &file);
  return file;
}

absl::StatusOr<std::unique_ptr<OpenFile>> OpenFile::Open(const InputFile& file) {
  // O_NONBLOCK: if a pipe replaced the file, this must not wait for a writer.
  const int descriptor = open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return FileError(errno, absl::StrCat("cannot open ", file.path));
  std::unique_ptr<OpenFile> result(new OpenFile(file.path, descriptor));
  struct stat status;
  InputFile now;
  if (fstat(descriptor, &status) == 0) Fill(status, &now);
  if (now.size != file.size || now.modified_ns != file.modified_ns) {
    absl::Status changed =
        ContentError(absl::StrCat(file.path, " has changed while it was in use: it had ", file.size,
                                  " bytes, it has ", now.size));
    return changed;
  }
  return result;
}

OpenFile::~OpenFile() { close(descriptor_); }

absl::Status OpenFile::CutOff() const {
  return ContentError(absl::StrCat(path_, " was cut off while it was in use"));
}

absl::Status OpenFile::Read(uint64_t offset, absl::Span<uint8_t> to) const {
  while (!to.empty()) {
    const ssize_t got = pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, absl::StrCat("cannot read ", path_));
    if (got == 0) return CutOff();
    to.remove_prefix(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

void OpenFile::Expect(uint64_t offset, uint64_t bytes) const {
  posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                POSIX_FADV_WILLNEED);
}

absl::StatusOr<std::string> ReadText(const InputFile& file, uint64_t most) {
  if (file.size > most) {
    return ContentError(
        absl::StrCat(file.path, " has ", file.size, " bytes, ", most, " are the most"));
  }
  QUANTD_ASSIGN_OR_RETURN(const std::unique_ptr<OpenFile> open, OpenFile::Open(file));
  std::string text(file.size, '\0');
  QUANTD_RETURN_IF_ERROR(open->Read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  return text;
}

}  // namespace quantd::checkpoints
