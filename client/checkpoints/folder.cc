#include "checkpoints/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"
#include "files/file_names.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

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
        return ContentError(absl::StrCat(path, " is a link to ", target.string(),
                                         ", which is not in the model's folder; copy it there"));
      }
      if (is_folder && HoldsPath(target, fs::canonical(folder, unknown))) {
        return ContentError(absl::StrCat(path, " is a link to a folder that contains it"));
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
  if (error) return FileError(error.value(), absl::StrCat("cannot read ", folder));
  return absl::OkStatus();
}

}  // namespace

bool LiesIn(const std::string& path, const std::string& place) {
  const auto real = [](const std::string& name) {  // without links, as far as the path exists
    std::error_code error;
    const fs::path absolute = fs::absolute(name, error);
    const fs::path found = error ? absolute : fs::weakly_canonical(absolute, error);
    return error ? absolute.lexically_normal() : found;
  };
  const fs::path real_place = real(place);
  struct stat there, here;
  const bool exists = stat(place.c_str(), &there) == 0;
  for (fs::path at = real(path);; at = at.parent_path()) {
    if (at == real_place) return true;
    if (exists && stat(at.c_str(), &here) == 0 && here.st_dev == there.st_dev &&
        here.st_ino == there.st_ino) {
      return true;
    }
    if (!at.has_relative_path() || at == at.parent_path()) return false;
  }
}

absl::StatusOr<std::vector<InputFile>> ListFiles(const std::string& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) return FileError(error.value(), absl::StrCat("cannot read ", folder));
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
  if (error) return FileError(error.value(), absl::StrCat("cannot write ", folder));
  return absl::OkStatus();
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return FileError(error.value(), absl::StrCat("cannot remove ", path));
  return absl::OkStatus();
}

}  // namespace quantd::checkpoints
