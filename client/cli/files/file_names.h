// Names of files: their parts, whether they are the same file, and new unique names.
#ifndef QUANTD_CLI_FILES_FILE_NAMES_H_
#define QUANTD_CLI_FILES_FILE_NAMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace quantd::cli {

// "a/b" of "a/b/c"; "." of "c".
std::string FolderOf(const std::string& path);
// "c" of "a/b/c".
std::string NameOf(const std::string& path);
// Writes the names in a folder to the disk. Not all file systems support this.
void SyncFolder(const std::string& folder);
// A path in the folder for temporary files: TMPDIR, or else /tmp.
std::string ScratchPath();
// 16 unpredictable digits. The process number would not be enough: it is 1 in every container, and
// the leftovers of a killed run would collide with the next run.
std::string UniqueName();

// A file that a command reads or writes, and its origin: "--report", or "FILE".
struct NamedFile {
  std::string flag, path;
};

// OK if every output is a separate file, whatever links and folders the paths contain and whether
// or not it exists. Otherwise INVALID_ARGUMENT with both names.
absl::Status CheckApart(absl::Span<const NamedFile> inputs, absl::Span<const NamedFile> outputs);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_FILE_NAMES_H_
