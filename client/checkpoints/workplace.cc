#include "checkpoints/workplace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "checkpoints/errors.h"
#include "checkpoints/files.h"
#include "files/file_names.h"
#include "files/signals.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

namespace fs = std::filesystem;

constexpr char kState[] = ".quantctl-convert.json";
constexpr uint64_t kMaxState = 64 << 20;
constexpr int kStateTries = 100;
constexpr int kLockTries = 30;
constexpr useconds_t kLockWaitMicroseconds = 100'000;

bool Exists(const std::string& path, struct stat* status) {
  return lstat(path.c_str(), status) == 0;
}

bool IsMountPoint(const std::string& path) {
  struct statx found;
  return statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &found) == 0 &&
         (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// The first file that has changed.
std::string FirstChange(const Json& was, const Json& is) {
  const auto text = [](const Json& files, const std::string& name) {
    const auto file = files.find(name);
    if (file == files.end()) return std::string("none");
    if (!file->is_array() || file->empty()) return std::string("something else");
    return absl::StrCat(file->at(0).dump(), " bytes");
  };
  for (const Json* files : {&is, &was}) {
    for (const auto& [name, file] : files->items()) {
      const auto before = was.find(name);
      const auto now = is.find(name);
      if (before != was.end() && now != is.end() && *before == *now) continue;
      const std::string size_before = text(was, name);
      const std::string size = text(is, name);
      return size_before == size ? absl::StrCat(name, ", of ", size, ", was changed")
                                 : absl::StrCat(name, " had ", size_before, " and has ", size);
    }
  }
  return "";
}

// Whether it is a state that a run has not finished writing.
bool IsUnfinishedState(absl::string_view name) {
  return absl::StartsWith(name, kState) && absl::EndsWith(name, ".tmp");
}

absl::Status CannotWrite(const std::string& path) {
  return FileError(errno, "cannot write $0", path);
}

// Renames a folder, and back: this fails for some folders, such as those of a lower layer of
// overlayfs.
absl::Status CheckRename(const std::string& path) {
  const std::string other =
      absl::StrCat(cli::FolderOf(path), "/.quantctl-", cli::UniqueName(), ".tmp");
  if (std::rename(path.c_str(), other.c_str()) != 0) return CannotWrite(path);
  return std::rename(other.c_str(), path.c_str()) == 0 ? absl::OkStatus() : CannotWrite(path);
}

}  // namespace

Workplace::Workplace(WorkplaceOptions options)
    : options_(std::move(options)), path_(absl::StrCat(options_.out, ".partial")) {}

Workplace::~Workplace() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<std::unique_ptr<Workplace>> Workplace::Open(WorkplaceOptions options) {
  std::unique_ptr<Workplace> place(new Workplace(std::move(options)));
  QUANTD_RETURN_IF_ERROR(place->CheckOut());
  QUANTD_RETURN_IF_ERROR(place->Begin());
  return place;
}

absl::Status Workplace::CheckOut() const {
  const std::string& out = options_.out;
  QUANTD_RETURN_IF_ERROR(CheckApart(out));
  QUANTD_RETURN_IF_ERROR(CheckApart(path_));
  if (const std::string name = cli::NameOf(out); name == "." || name == "..") {
    return ContentError("--output $0 ends in $1, which nothing can replace; give the folder's name",
                        out, name);
  }
  if (options_.names.contains(kState)) {
    return ContentError("$0/$1 has the name of what is kept in $2 about a run; move it away",
                        options_.model, kState, path_);
  }
  struct stat status;
  if (!Exists(out, &status)) return absl::OkStatus();
  if (!options_.force) {
    return absl::AlreadyExistsError(absl::Substitute("$0 exists; --force overwrites it", out));
  }
  if (!options_.is_folder) {
    if (S_ISREG(status.st_mode)) return absl::OkStatus();
    return ContentError("$0 exists and is not a regular file", out);
  }
  struct stat config;
  if (!S_ISDIR(status.st_mode)) {
    return ContentError("$0 exists and is not a folder", out);
  }
  if (IsMountPoint(out)) {
    return ContentError("$0 is a mount point, which nothing can replace; write to a folder in it",
                        out);
  }
  std::error_code error;
  if (Exists(absl::StrCat(out, "/config.json"), &config) || fs::is_empty(out, error)) {
    return absl::OkStatus();
  }
  return ContentError("$0 exists and is not a model's folder: it has no config.json", out);
}

// Checks that neither the model nor a file of it, which may be a link, is in `place`, and vice
// versa.
absl::Status Workplace::CheckApart(const std::string& place) const {
  const std::string what = place == path_
                               ? absl::StrCat(path_, ", where --output ", options_.out, " is made,")
                               : absl::StrCat("--output ", place);
  if (LiesIn(place, options_.model) || LiesIn(options_.model, place)) {
    return ContentError("$0 and FILE $1 are nested in each other; write to another place", what,
                        options_.model);
  }
  for (const std::string& file : options_.inputs) {
    if (!LiesIn(file, place)) continue;
    return ContentError("$0 and $1 of FILE $2 are nested in each other; write to another place",
                        what, file, options_.model);
  }
  return absl::OkStatus();
}

absl::Status Workplace::Lock() {
  descriptor_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) return CannotWrite(path_);
  // A process that was just killed may still hold the lock.
  for (int tries = 0; flock(descriptor_, (options_.shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0;
       ++tries) {
    if (errno != EWOULDBLOCK) return absl::OkStatus();  // a file system without locks
    if (tries == kLockTries) {
      return absl::AlreadyExistsError(absl::Substitute("another process is at work in $0", path_));
    }
    usleep(kLockWaitMicroseconds);
  }
  return absl::OkStatus();
}

absl::Status Workplace::Begin() {
  struct stat status;
  const bool exists = Exists(path_, &status);
  if (exists && !options_.resume && !options_.force) {
    return absl::AlreadyExistsError(absl::Substitute(
        "$0 exists, from an unfinished run: --resume continues it, --force starts again", path_));
  }
  if (exists && !S_ISDIR(status.st_mode)) {
    return ContentError("$0 exists and is not a folder", path_);
  }
  if (!exists && mkdir(path_.c_str(), 0777) != 0 && !(options_.shared && errno == EEXIST)) {
    return CannotWrite(path_);
  }
  QUANTD_RETURN_IF_ERROR(Lock());
  QUANTD_RETURN_IF_ERROR(CheckOwn());
  if (options_.resume) return TakeOver();
  if (exists) {
    std::error_code error;
    std::vector<std::string> old;
    for (const auto& entry : fs::directory_iterator(path_, error)) {
      // The state stays until another one replaces it: without it no run may erase the rest.
      if (entry.path().filename() != kState) old.push_back(entry.path());
    }
    for (const std::string& path : old) {
      QUANTD_RETURN_IF_ERROR(RemoveAll(path));
    }
  }
  return WriteState();
}

absl::StatusOr<std::optional<Json>> Workplace::ReadState() const {
  absl::StatusOr<InputFile> file;
  absl::StatusOr<std::string> text;
  // Between the check and the reading, other processes that begin here may replace the state.
  for (int tries = 0; tries == 0 || (!text.ok() && tries < kStateTries); ++tries) {
    file = InputFile::Of(PathOf(kState), kState);
    if (absl::IsNotFound(file.status())) return std::nullopt;
    if (!file.ok()) return file.status();
    text = ReadText(*file, kMaxState);
  }
  if (!text.ok()) return text.status();
  QUANTD_ASSIGN_OR_RETURN(Json found, ParseJson(*text, file->path));
  for (const char* key : {"version", "to", "files"}) {
    if (found.contains(key)) continue;
    return ContentError("$0 is not of quantctl: it has no '$1'; move it away", file->path, key);
  }
  return found;
}

// Whether OUT.partial was made by a run: it contains a run's state, or nothing else.
absl::Status Workplace::CheckOwn() const {
  std::error_code error;
  std::string other;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    const std::string name = entry.path().filename().string();
    if (!IsUnfinishedState(name)) other = name;
  }
  if (error) return FileError(error.value(), "cannot read $0", path_);
  // Checked last: each of several processes that begin here writes it before any other file.
  QUANTD_ASSIGN_OR_RETURN(const std::optional<Json> state, ReadState());
  if (state.has_value() || other.empty()) return absl::OkStatus();
  return ContentError(
      "$0 is not of quantctl: it holds $1 and no $2; move it away, or write to another place than "
      "--output $3",
      path_, other, kState, options_.out);
}

absl::Status Workplace::TakeOver() {
  QUANTD_ASSIGN_OR_RETURN(const std::optional<Json> found, ReadState());
  if (found.has_value()) {
    QUANTD_RETURN_IF_ERROR(CheckState(*found));
    holds_finished_ = true;
  }
  if (!options_.shared) {
    QUANTD_RETURN_IF_ERROR(RemoveUnfinished());
  }
  return holds_finished_ ? absl::OkStatus() : WriteState();
}

absl::Status Workplace::CheckState(const Json& found) const {
  // As it would be read again: names and patterns that are not UTF-8 are written in a changed form.
  QUANTD_ASSIGN_OR_RETURN(const Json state, ParseJson(DumpJson(options_.state), PathOf(kState)));
  for (const auto& [key, value] : state.items()) {
    const auto was = found.find(key);
    if (was != found.end() && *was == value) continue;
    const auto text = [](const Json& json) {
      return json.dump(-1, ' ', true, Json::error_handler_t::replace);
    };
    if (key == "files") {
      return ContentError(
          "$0 was begun when files of $1 had other sizes or times: $2; --force starts again", path_,
          options_.model, was == found.end() ? "" : FirstChange(*was, value));
    }
    return ContentError("$0 was begun with another '$1', $2 and not $3; --force starts again",
                        path_, key, was == found.end() ? "none" : text(*was), text(value));
  }
  return absl::OkStatus();
}

// Removes unfinished files of an earlier run; refuses to touch anything else.
absl::Status Workplace::RemoveUnfinished() const {
  QUANTD_ASSIGN_OR_RETURN(const std::vector<InputFile> files, ListFiles(path_));
  absl::flat_hash_set<std::string> temporary;
  for (const std::string& name : options_.names) {
    temporary.insert(TemporaryOf(name).substr(path_.size() + 1));
  }
  std::vector<std::string> unfinished;
  for (const InputFile& file : files) {
    if (IsUnfinishedState(file.name) || temporary.contains(file.name)) {
      unfinished.push_back(file.path);
    } else if (file.name != kState && !options_.names.contains(file.name)) {
      return ContentError("$0 is not of this conversion; --force starts again", file.path);
    }
  }
  for (const std::string& path : unfinished) {
    if (unlink(path.c_str()) != 0) return CannotWrite(path);
  }
  return absl::OkStatus();
}

absl::Status Workplace::WriteState() const {
  // Several processes, and threads of one, may begin at the same time; all of them write the same.
  const std::string temporary = absl::StrCat(PathOf(kState), ".", cli::UniqueName(), ".tmp");
  return WriteFile(temporary, PathOf(kState), DumpJson(options_.state));
}

// The path of the state after OUT.partial was renamed to OUT.
std::string Workplace::StateOfOut() const { return absl::StrCat(options_.out, "/", kState); }

std::string Workplace::PathOf(const std::string& name) const {
  return absl::StrCat(path_, "/", name);
}

std::string Workplace::TemporaryOf(const std::string& name) const {
  std::string temporary = absl::StrCat(name, ".tmp");
  while (options_.names.contains(temporary)) temporary += ".tmp";
  return PathOf(temporary);
}

absl::Status Workplace::Replace(const std::string& from) const {
  const char* const to = options_.out.c_str();
  if (!options_.force) {
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
      return absl::OkStatus();
    }
    // The file system does not support the check; whether OUT exists was checked before.
    if (errno != EINVAL && errno != ENOSYS) return CannotWrite(options_.out);
  }
  struct stat status;
  if (options_.is_folder && Exists(options_.out, &status)) {
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to, RENAME_EXCHANGE) == 0) {
      unlink(StateOfOut().c_str());  // at once, because removing the old OUT takes a while
      return RemoveAll(from);
    }
    // Some file systems can't exchange, and overlayfs can't for folders of a lower layer (EXDEV). A
    // folder that can't be renamed for another reason can't be replaced at all.
    if (errno != EINVAL && errno != ENOSYS && errno != EXDEV) return CannotWrite(options_.out);
    // Before OUT is removed, because its replacement may be the one that can't be renamed.
    QUANTD_RETURN_IF_ERROR(CheckRename(from));
    QUANTD_RETURN_IF_ERROR(RemoveAll(options_.out));
  }
  return std::rename(from.c_str(), to) == 0 ? absl::OkStatus() : CannotWrite(options_.out);
}

absl::Status Workplace::Publish() {
  cli::SyncFolder(path_);
  const cli::SignalsWait wait;
  QUANTD_RETURN_IF_ERROR(Replace(options_.is_folder ? path_ : PathOf(cli::NameOf(options_.out))));
  // After the rename: until then the state says whose OUT.partial it is.
  const std::string state = options_.is_folder ? StateOfOut() : PathOf(kState);
  if (unlink(state.c_str()) != 0 && errno != ENOENT) return CannotWrite(state);
  if (options_.is_folder) {
    cli::SyncFolder(options_.out);
  } else {
    rmdir(path_.c_str());
  }
  cli::SyncFolder(cli::FolderOf(options_.out));
  return absl::OkStatus();
}

void Workplace::Withdraw() { RemoveAll(path_).IgnoreError(); }

}  // namespace quantd::checkpoints
