// Bearer tokens, of a file: one a line; blank lines and those that begin with # do not count.
//
// Compared as digests, each with every one, so that the time says nothing about them.
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
  static constexpr size_t kMostBytes = 4096;  // of one token

  // INVALID_ARGUMENT, in one line with the file and "(--auth_token_file)", when it can't be read,
  // contains no token, too many, or a line that is not one (not of the characters of RFC 6750);
  // also where OpenSSL has no SHA-256.
  static absl::StatusOr<std::unique_ptr<Tokens>> Load(std::string path);

  const std::string& path() const { return path_; }
  size_t size() const { return digests()->size(); }
  // Reads the file again. Not OK: nothing has changed.
  absl::Status Reload();

  // Whether it is one of them.
  bool Contains(absl::string_view token) const;
  // The same of a header's value, "Bearer TOKEN". UNAUTHENTICATED says what is missing or wrong,
  // and nothing of what was sent. `where`: what it must be in, "metadata" for example.
  absl::Status Check(absl::string_view authorization, absl::string_view where) const;

 private:
  using Digest = std::array<uint8_t, 32>;
  using Digests = std::vector<Digest>;

  explicit Tokens(std::string path) : path_(std::move(path)) {}
  static absl::StatusOr<Digests> Read(const std::string& path);
  // None where OpenSSL has no SHA-256: no token then.
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
