// The server's certificate, its key, and whose clients it takes: what sessions are made of.
//
//   auto certificates = Certificates::Load({.certificate = "tls.crt", .key = "tls.key"});
//   (*certificates)->Reload();   // sessions that there are go on with what they began with
#ifndef QUANTD_SERVER_ACCESS_CERTIFICATES_H_
#define QUANTD_SERVER_ACCESS_CERTIFICATES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

struct ssl_ctx_st;  // SSL_CTX

namespace quantd::access {

// Who offers this protocol, beside others, only asks whether anybody is there. As ALPN has it: its
// length, and the name.
inline constexpr char kProbeProtocol[] = "\x0cquantd-probe";

// PEM files.
struct TlsFiles {
  std::string certificate;  // the server's, and after it those that lead to its authority
  std::string key;
  std::string client_ca;  // authorities of clients' certificates; empty: clients need none
};

// Who asks for a session. kGrpc: HTTP/2 or nothing, and a client certificate if there is a
// client_ca. kHttp: HTTP/1.1; a certificate may be shown, and is then a right one.
enum class Protocol : uint8_t { kGrpc, kHttp };

// Safe from any thread.
class Certificates {
 public:
  using Context = std::shared_ptr<ssl_ctx_st>;

  // INVALID_ARGUMENT, in one line with the file and the flag, when a file can't be read or used, or
  // certificate and key do not belong together.
  static absl::StatusOr<std::unique_ptr<Certificates>> Load(TlsFiles files);

  const TlsFiles& files() const { return files_; }
  // Reads the files again. Not OK: nothing has changed.
  absl::Status Reload();

  Context context(Protocol protocol) const;
  bool wants_client_certificates() const { return !files_.client_ca.empty(); }

  // Of what is in use. `serial`: in hexadecimal.
  struct Validity {
    std::string serial;
    absl::Time not_before, not_after;
  };
  Validity validity() const { return loaded().validity; }
  // What is wrong with it and not fatal, a line each: over, not yet valid.
  std::vector<std::string> Warnings(absl::Time now = absl::Now()) const;

 private:
  struct Loaded {
    std::array<Context, 2> contexts;  // by Protocol
    Validity validity;
  };

  explicit Certificates(TlsFiles files) : files_(std::move(files)) {}
  static absl::StatusOr<Loaded> Read(const TlsFiles& files);
  Loaded loaded() const {
    const std::lock_guard lock(mutex_);
    return loaded_;
  }

  const TlsFiles files_;
  mutable std::mutex mutex_;
  Loaded loaded_;  // guarded by mutex_
};

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_CERTIFICATES_H_
