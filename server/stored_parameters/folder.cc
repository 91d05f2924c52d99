#include "server/stored_parameters/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <queue>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors/reason.h"
#include "server/fd/may_pass.h"
#include "server/fd/open_beneath.h"
#include "server/log/log.h"
#include "server/stored_parameters/canonical.h"
#include "server/stored_parameters/file.h"
#include "server/stored_parameters/hash.h"

namespace quantd::stored_parameters {
namespace {

// The suffix of a set that is being written; the file is hidden, and its name is not that of a set.
constexpr absl::string_view kNewSuffix = ".quantd-new";

std::string ErrnoText(int error) { return std::generic_category().message(error); }

absl::Status NoSet(const Reference& reference) {
  return absl::NotFoundError(absl::StrCat("no stored parameters ", reference.Text(),
                                          ": call PutParameters, then try again"));
}

// A file exists, but does not match its name.
absl::Status BadFile(const Reference& reference, absl::string_view why) {
  static log::Repeated lines(log::Level::kWarn, "bad file of parameters");
  lines.Write([&] { return log::Fields{{"file", reference.FileName()}, {"why", why}}; });
  return NoSet(reference);
}

absl::Status CannotRead(const Reference& reference, int error) {
  if (error == ENOENT) return NoSet(reference);
  if (!MayPass(error)) return BadFile(reference, ErrnoText(error));
  return absl::UnavailableError(absl::StrCat("cannot read ", reference.FileName(),
                                             " in --parameters_dir: ", ErrnoText(error)));
}

absl::Status CannotWrite(int error) {
  const std::string why = ErrnoText(error);
  switch (error) {
    case EROFS:
    case EACCES:
    case EPERM:
    case ENOENT:
    case ENOTDIR:
      return errors::WithReason(absl::FailedPreconditionError(absl::StrCat(
                                    "the server may not write to --parameters_dir: ", why)),
                                "PARAMETERS_READ_ONLY");
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(
          absl::StrCat("--parameters_dir has no room for the set: ", why));
    default:
      return absl::UnavailableError(absl::StrCat("cannot write to --parameters_dir: ", why));
  }
}

absl::Status CannotList(int error) {
  return absl::UnavailableError(absl::StrCat("cannot read --parameters_dir: ", ErrnoText(error)));
}

// Removes those of killed servers; files of other running replicas are younger.
void RemoveLeftovers(int directory) {
  constexpr time_t kOldSeconds = 3600;
  std::vector<std::string> old;
  ForEachName(directory, [&](absl::string_view name) {
    struct stat found;
    if (absl::StartsWith(name, ".") && absl::EndsWith(name, kNewSuffix) &&
        fstatat(directory, std::string(name).c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        found.st_mtime + kOldSeconds < time(nullptr)) {
      old.emplace_back(name);
    }
    return old.size() < 1000;
  });
  for (const std::string& name : old) unlinkat(directory, name.c_str(), 0);
}

}  // namespace

absl::StatusOr<Folder> Folder::Open(std::string path) {
  const UniqueFd directory = OpenFolder(path);
  if (!directory.is_open()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--parameters_dir is '", path, "': ", ErrnoText(errno)));
  }
  RemoveLeftovers(directory.get());
  return Folder(std::move(path));
}

uint64_t Folder::Size(const Reference& reference) const {
  const UniqueFd directory = OpenFolder(path_);
  const UniqueFd file =
      OpenBeneath(directory.get(), reference.FileName(), O_RDONLY, Links::kInside);
  struct stat found;
  if (!file.is_open() || fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return 0;
  return static_cast<uint64_t>(found.st_size);
}

absl::StatusOr<std::string> Folder::Read(const Reference& reference, uint64_t most) const {
  const UniqueFd directory = OpenFolder(path_);
  if (!directory.is_open()) return CannotRead(reference, errno);
  const UniqueFd file =
      OpenBeneath(directory.get(), reference.FileName(), O_RDONLY, Links::kInside);
  if (!file.is_open()) return CannotRead(reference, errno);
  struct stat found;
  if (fstat(file.get(), &found) != 0) return CannotRead(reference, errno);
  if (!S_ISREG(found.st_mode)) return BadFile(reference, "not a regular file");
  const auto size = static_cast<uint64_t>(found.st_size);
  if (size > kMaxSetBytes) return BadFile(reference, "larger than a set may be");
  if (size > most) {
    return absl::UnavailableError(absl::StrCat(reference.FileName(), " in --parameters_dir has ",
                                               size, " bytes, and had ", most,
                                               " just now; try again"));
  }
  std::string bytes(size, '\0');
  if (const int error = ReadAll(file, bytes); error != 0) return CannotRead(reference, error);
  if (Sha256(bytes) != reference.hash) return BadFile(reference, "it has a different hash");
  return bytes;
}

absl::Status Folder::Write(const Reference& reference, const std::string& bytes) const {
  const UniqueFd directory = OpenFolder(path_);
  if (!directory.is_open()) return CannotWrite(errno);
  if (Size(reference) == bytes.size() && Read(reference, bytes.size()).ok()) {
    return absl::OkStatus();
  }
  const std::string name = reference.FileName();
  const std::string hidden = absl::StrCat(".", reference.name, "@", reference.hash.substr(0, 16),
                                          "-", UniqueText(), kNewSuffix);
  int error = 0;
  {
    const UniqueFd file(openat(directory.get(), hidden.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!file.is_open()) return CannotWrite(errno);
    error = WriteAll(file, bytes);
    if (error == 0 && fsync(file.get()) != 0) error = errno;
  }
  if (error == 0 && renameat(directory.get(), hidden.c_str(), directory.get(), name.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    unlinkat(directory.get(), hidden.c_str(), 0);
    return CannotWrite(error);
  }
  // A path-only descriptor can't be synced.
  const UniqueFd listed(openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (listed.is_open() && fsync(listed.get()) != 0 && errno != EINVAL) return CannotWrite(errno);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Folder::List(absl::string_view prefix, size_t most) const {
  const UniqueFd directory = OpenFolder(path_);
  if (!directory.is_open()) return CannotList(errno);
  // The smallest so far, with the largest of them on top, because a folder may have any number of
  // files.
  std::priority_queue<std::string> first;
  const int error = ForEachName(directory.get(), [&](absl::string_view name) {
    const std::optional<Reference> reference = ParseFileName(name);
    if (!reference.has_value()) return true;
    std::string text = reference->Text();
    if (!absl::StartsWith(text, prefix)) return true;
    if (first.size() == most && text >= first.top()) return true;
    first.push(std::move(text));
    if (first.size() > most) first.pop();
    return true;
  });
  if (error != 0) return CannotList(error);
  std::vector<std::string> references(first.size());
  for (size_t i = references.size(); i-- > 0; first.pop()) references[i] = first.top();
  return references;
}

absl::StatusOr<std::vector<Reference>> Folder::Named(absl::string_view name, size_t most) const {
  const UniqueFd directory = OpenFolder(path_);
  if (!directory.is_open()) return CannotList(errno);
  std::vector<Reference> found;
  const int error = ForEachName(directory.get(), [&](absl::string_view file) {
    if (!absl::StartsWith(file, name)) return true;
    std::optional<Reference> reference = ParseFileName(file);
    if (reference.has_value() && reference->name == name) found.push_back(*std::move(reference));
    return found.size() < most;
  });
  if (error != 0) return CannotList(error);
  return found;
}

}  // namespace quantd::stored_parameters
