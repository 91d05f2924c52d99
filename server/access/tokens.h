// Bearer tokens from a file, one per line. Blank lines and lines that begin with # are ignored.
//
// Tokens are compared as digests, each with all of them, so that the time reveals nothing about
// them.
#ifndef QUANTD_SERVER_ACCESS_TOKENS_H_
#define QUANTD_SERVER_ACCESS_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::access {

// Safe from any thread.
class Tokens {
 public:
  static constexpr size_t kMostTokens = 256;
  static constexpr size_t kMostBytes = 4096;  // the longest token

  // Returns INVALID_ARGUMENT, in one line with the file and "(--auth_token_file)", if the file
  // can't be read, contains no token or too many, or has a line that is not a token (characters of
  // RFC 6750); also if OpenSSL has no SHA-256.
  static absl::StatusOr<std::unique_ptr<Tokens>> Load(std::string path);

  size_t size() const { return digests()->size(); }
  // Reads the file again. If this fails, the tokens in use stay as they are.
  absl::Status Reload();

  // Whether `token` is one of the tokens.
  bool Contains(absl::string_view token) const;
  // Checks the value of a header, "Bearer TOKEN". UNAUTHENTICATED says what is missing or wrong,
  // and repeats nothing of what was sent. `where`: what must contain it, "metadata" for example.
  absl::Status Check(absl::string_view authorization, absl::string_view where) const;

 private:
  using Digest = std::array<uint8_t, 32>;
  using Digests = std::vector<Digest>;

  explicit Tokens(std::string path) : path_(std::move(path)) {}
  static absl::StatusOr<Digests> Read(const std::string& path);
  // Returns nullopt if OpenSSL has no SHA-256; then no token matches.
  static std::optional<Digest> DigestOf(absl::string_view token);
  std::shared_ptr<const Digests> digests() const {
    const std::lock_guard lock(mutex_);
    return digests_;
  }

  const std::string path_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Digests> digests_;  // guarded by mutex_
};

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_TOKENS_H_
