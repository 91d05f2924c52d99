// Folders and their contents.
#ifndef QUANTD_CHECKPOINTS_FOLDER_H_
#define QUANTD_CHECKPOINTS_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "checkpoints/input_file.h"

namespace quantd::checkpoints {

// Whether `path` is `place`, or is or would be inside of it, through any links, mounts and names.
bool LiesIn(const std::string& path, const std::string& place);

// All files of a folder and its subfolders except .git, by name ("sub/file"). Links are followed to
// files in the folder, or in a blobs/ beside it or a folder around it, as in the Hub's cache. Links
// to folders in it are left out, because these are listed under their own names. Returns
// INVALID_ARGUMENT, with the path, for other links, and for what is no file or folder.
absl::StatusOr<std::vector<InputFile>> ListFiles(const std::string& folder);

// Whether a file's name is that of weights in another format: .bin .pt .pth .gguf .h5 .msgpack.
bool HoldsWeights(absl::string_view name);

// Creates the missing folders above `path`.
absl::Status MakeFoldersFor(const std::string& path);
// Removes a file, or a folder with all of its contents; links are removed, not followed.
absl::Status RemoveAll(const std::string& path);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_FOLDER_H_
