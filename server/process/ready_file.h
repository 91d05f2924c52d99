// The file that says that the server serves, and where.
#ifndef QUANTD_SERVER_PROCESS_READY_FILE_H_
#define QUANTD_SERVER_PROCESS_READY_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace quantd::process {

// Writes {"grpc": [...], "http": "...", "pid": N} to `path`, all of it or nothing: whoever sees the
// file sees it whole. UNAVAILABLE, in one line, when it can't be written.
absl::Status WriteReadyFile(const std::string& path, const std::vector<std::string>& grpc,
                            const std::string& http);

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_READY_FILE_H_
