// How a client shows who it is, and whom it trusts: TLS from PEM files, and the bearer token of a
// file, which is read again when it changes.
#ifndef QUANTD_CLIENT_CPP_CREDENTIALS_H_
#define QUANTD_CLIENT_CPP_CREDENTIALS_H_

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quantd/client/options.h"

namespace grpc {
class ChannelCredentials;
}

namespace quantd::client {

struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  bool tls = false;
};

// Returns INVALID_ARGUMENT for a file that can't be read or is not a PEM file, and for a
// certificate without its key.
absl::StatusOr<Credentials> CredentialsOf(const TlsOptions& tls);

// The token of a file. Thread-safe.
class TokenFile {
 public:
  // Uses the file `given`, or QUANTD_AUTH_TOKEN_FILE; returns nullptr if there is neither. Returns
  // INVALID_ARGUMENT, with the file's name, if the file contains no token.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& given);

  const std::string& path() const { return path_; }
  // "Bearer TOKEN". If the file can no longer be read, the last token is kept.
  std::string Authorization();

 private:
  using Stamp = std::tuple<ino_t, int64_t, int64_t, int64_t>;  // file, size, time

  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  absl::StatusOr<Stamp> StampNow() const;
  absl::StatusOr<std::string> Read() const;

  const std::string path_;
  std::mutex mutex_;
  Stamp stamp_;  // guarded by mutex_, like the next
  std::string authorization_;
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_CREDENTIALS_H_
