// Names of files: their parts, which of them are the same file, and new ones that nobody else has.
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
// Brings the names in a folder to the disk. Not every file system can do that.
void SyncFolder(const std::string& folder);
// A path in the folder for files that are needed in between: TMPDIR, else /tmp.
std::string ScratchPath();
// 16 digits that cannot be told beforehand. A process's number would not do: in every container it
// is 1, and what a run that was killed has left would be in the way of the next.
std::string UniqueName();

// A file that a command reads or writes, and what names it: "--report", or "FILE".
struct NamedFile {
  std::string flag, path;
};

// OK when every output is a file of its own, whatever links and folders the paths go through and
// whether it exists already. Else INVALID_ARGUMENT with both names.
absl::Status CheckApart(absl::Span<const NamedFile> inputs, absl::Span<const NamedFile> outputs);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_FILE_NAMES_H_
