// The file that says that the server is ready, and its addresses.
#ifndef QUANTD_SERVER_PROCESS_READY_FILE_H_
#define QUANTD_SERVER_PROCESS_READY_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace quantd::process {

// Writes {"grpc": [...], "http": "...", "pid": N} to `path` atomically: a reader sees the whole
// file or none. Returns UNAVAILABLE, in one line, if it can't be written.
absl::Status WriteReadyFile(const std::string& path, const std::vector<std::string>& grpc,
                            const std::string& http);

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_READY_FILE_H_
