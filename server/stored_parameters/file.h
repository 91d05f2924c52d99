// Descriptors of the directory and its files.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_FILE_H_
#define QUANTD_SERVER_STORED_PARAMETERS_FILE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/fd/unique_fd.h"

namespace quantd::stored_parameters {

// Opens a directory to look files up in it. If it is not a directory, the result is not open and
// errno is set.
UniqueFd OpenFolder(const std::string& path);

// Reads from the beginning of the file to fill `bytes`, and truncates `bytes` if the file is
// shorter. Returns an errno.
int ReadAll(const UniqueFd& file, std::string& bytes);
// Returns an errno.
int WriteAll(const UniqueFd& file, absl::string_view bytes);

// A text that is practically unique among all calls and processes that write to one directory.
std::string UniqueText();

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_FILE_H_
