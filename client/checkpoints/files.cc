#include "checkpoints/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "checkpoints/errors.h"
#include "files/file_names.h"
#include "files/signals.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

void Fill(const struct stat& status, InputFile* file) {
  file->size = static_cast<uint64_t>(status.st_size);
  file->mode = status.st_mode & 0777;
  file->modified_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

constexpr mode_t kMode = 0666;
constexpr uint64_t kPiece = 1 << 20;

// Errors that mean that a file system can't copy by itself.
bool CannotCopy(int error) {
  return error == EXDEV || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP ||
         error == EBADF || error == ETXTBSY || error == EPERM;
}

namespace fs = std::filesystem;

constexpr char kHistory[] = ".git";  // in a clone: contains every weight again

bool HoldsPath(const fs::path& folder, const fs::path& path) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

// Lists a folder whose files may be links to `places`, canonical folders. A link to a folder in
// them is not followed: its contents are listed under their own names.
absl::Status List(const std::string& folder, const std::string& prefix,
                  const std::vector<fs::path>& places, std::vector<InputFile>* files) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    const std::string name = absl::StrCat(prefix, it->path().filename().string());
    std::error_code unknown;
    const bool is_folder = fs::is_directory(it->status(unknown));
    if (is_folder && name == kHistory) continue;
    if (it->is_symlink(unknown)) {
      const fs::path target = fs::canonical(it->path(), unknown);
      const auto holds = [&](const fs::path& place) { return HoldsPath(place, target); };
      if (!unknown && std::none_of(places.begin(), places.end(), holds)) {
        return ContentError("$0 is a link to $1, which is not in the model's folder; copy it there",
                            path, target.string());
      }
      if (is_folder && HoldsPath(target, fs::canonical(folder, unknown))) {
        return ContentError("$0 is a link to a folder that contains it", path);
      }
      if (is_folder) continue;
    }
    if (is_folder) {
      QUANTD_RETURN_IF_ERROR(List(path, absl::StrCat(name, "/"), places, files));
      continue;
    }
    QUANTD_ASSIGN_OR_RETURN(InputFile file, InputFile::Of(path, name));
    files->push_back(std::move(file));
  }
  if (error) return FileError(error.value(), "cannot read $0", folder);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InputFile> InputFile::Of(const std::string& path, const std::string& name) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    return FileError(errno, "cannot open $0", path);
  }
  if (!S_ISREG(status.st_mode)) {
    return ContentError("$0 is not a regular file", path);
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
  if (descriptor < 0) return FileError(errno, "cannot open $0", file.path);
  std::unique_ptr<OpenFile> result(new OpenFile(file.path, descriptor));
  struct stat status;
  InputFile now;
  if (fstat(descriptor, &status) == 0) Fill(status, &now);
  if (now.size != file.size || now.modified_ns != file.modified_ns) {
    absl::Status changed =
        ContentError("$0 has changed while it was in use: it had $1 bytes, it has $2", file.path,
                     file.size, now.size);
    return changed;
  }
  return result;
}

OpenFile::~OpenFile() { close(descriptor_); }

absl::Status OpenFile::CutOff() const {
  return ContentError("$0 was cut off while it was in use", path_);
}

absl::Status OpenFile::Read(uint64_t offset, absl::Span<uint8_t> to) const {
  while (!to.empty()) {
    const ssize_t got = pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "cannot read $0", path_);
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
    return ContentError("$0 has $1 bytes, $2 are the most", file.path, file.size, most);
  }
  QUANTD_ASSIGN_OR_RETURN(const std::unique_ptr<OpenFile> open, OpenFile::Open(file));
  std::string text(file.size, '\0');
  QUANTD_RETURN_IF_ERROR(open->Read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  return text;
}

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
      return absl::AlreadyExistsError(absl::Substitute("another process is making $0", path));
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
  return FileError(error, "cannot write $0", path_);
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

bool LiesIn(const std::string& path, const std::string& place) {
  const auto real = [](const std::string& name) {  // without links, as far as the path exists
    std::error_code error;
    const fs::path absolute = fs::absolute(name, error);
    const fs::path found = error ? absolute : fs::weakly_canonical(absolute, error);
    return error ? absolute.lexically_normal() : found;
  };
  const fs::path real_place = real(place);
  std::error_code error;
  for (fs::path at = real(path);; at = at.parent_path()) {
    if (at == real_place || fs::equivalent(at, place, error)) return true;
    if (!at.has_relative_path() || at == at.parent_path()) return false;
  }
}

absl::StatusOr<std::vector<InputFile>> ListFiles(const std::string& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) return FileError(error.value(), "cannot read $0", folder);
  // In the Hub's cache, the files of snapshots/REVISION are links to blobs/ beside snapshots.
  std::vector<fs::path> places = {real};
  for (fs::path at = real; at.has_relative_path(); at = at.parent_path()) {
    places.push_back(at.parent_path() / "blobs");
  }
  std::vector<InputFile> files;
  QUANTD_RETURN_IF_ERROR(List(folder, "", places, &files));
  std::sort(files.begin(), files.end(),
            [](const InputFile& a, const InputFile& b) { return a.name < b.name; });
  return files;
}

bool HoldsWeights(absl::string_view name) {
  for (const char* ending : {".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack"}) {
    if (absl::EndsWithIgnoreCase(name, ending)) return true;
  }
  return false;
}

absl::Status MakeFoldersFor(const std::string& path) {
  std::error_code error;
  const std::string folder = cli::FolderOf(path);
  fs::create_directories(folder, error);
  if (error) return FileError(error.value(), "cannot write $0", folder);
  return absl::OkStatus();
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return FileError(error.value(), "cannot remove $0", path);
  return absl::OkStatus();
}

}  // namespace quantd::checkpoints
