// Folders and what lies in them.
#ifndef QUANTD_CHECKPOINTS_FOLDER_H_
#define QUANTD_CHECKPOINTS_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "checkpoints/input_file.h"

namespace quantd::checkpoints {

// Whether `path` is `place`, or lies in it, or would: whatever links, mounts and names lead there.
bool LiesIn(const std::string& path, const std::string& place);

// Every file of a folder and of its subfolders but .git, by name ("sub/file"). Links are followed.
// INVALID_ARGUMENT, naming it, for what is neither file nor folder, and for links in a ring.
absl::StatusOr<std::vector<InputFile>> ListFiles(const std::string& folder);

// Whether a file's name is one of weights in another format: .bin .pt .pth .gguf .h5 .msgpack.
bool HoldsWeights(absl::string_view name);

// Makes the folders above `path`, those that are missing.
absl::Status MakeFoldersFor(const std::string& path);
// Removes a file or a folder with all that is in it; links are removed, not followed.
absl::Status RemoveAll(const std::string& path);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_FOLDER_H_
