#include "server/process/ready_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace quantd::process {

absl::Status WriteReadyFile(const std::string& path, const std::vector<std::string>& grpc,
                            const std::string& http) {
  const nlohmann::ordered_json ready = {{"grpc", grpc}, {"http", http}, {"pid", getpid()}};
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  {
    std::ofstream file(temporary);
    // The path of a socket may contain bytes that are not valid in JSON.
    file << ready.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    file.close();
    if (file.fail()) {
      const int error = errno;
      std::remove(temporary.c_str());
      return absl::UnavailableError(
          absl::StrCat("cannot write --ready_file ", path, ": ", std::strerror(error)));
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary.c_str());
    return absl::UnavailableError(
        absl::StrCat("cannot write --ready_file ", path, ": ", std::strerror(error)));
  }
  return absl::OkStatus();
}

}  // namespace quantd::process
