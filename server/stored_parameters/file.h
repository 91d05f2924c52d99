// Descriptors of the directory and of its files.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_FILE_H_
#define QUANTD_SERVER_STORED_PARAMETERS_FILE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/fd/unique_fd.h"

namespace quantd::stored_parameters {

// For looking files up in. Not open, with errno, when it is no directory.
UniqueFd OpenFolder(const std::string& path);

// Fills `bytes` from the beginning of the file; cuts it when the file has fewer. Returns an errno.
int ReadAll(const UniqueFd& file, std::string& bytes);
// Returns an errno.
int WriteAll(const UniqueFd& file, absl::string_view bytes);

// Different in every call and every process that writes to one directory, as good as surely.
std::string UniqueText();

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_FILE_H_
