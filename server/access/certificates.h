// The server's certificate and key, and the authorities of client certificates. Sessions use them.
//
//   auto certificates = Certificates::Load({.certificate = "tls.crt", .key = "tls.key"});
//   (*certificates)->Reload();   // open sessions keep the certificate that they began with
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

// Paths of PEM files.
struct TlsFiles {
  std::string certificate;  // the server's certificate, followed by the chain to its authority
  std::string key;
  std::string client_ca;  // authorities of client certificates; empty: clients need no certificate
};

// The protocol of a session. kGrpc: HTTP/2 only, and a client certificate if client_ca is set.
// kHttp: HTTP/1.1; a client certificate is optional, but must be valid if it is shown.
enum class Protocol : uint8_t { kGrpc, kHttp };

// Safe from any thread.
class Certificates {
 public:
  using Context = std::shared_ptr<ssl_ctx_st>;

  // Returns INVALID_ARGUMENT, in one line with the file and the flag, if a file can't be read or
  // used, or if the certificate and the key do not belong together.
  static absl::StatusOr<std::unique_ptr<Certificates>> Load(TlsFiles files);

  // Reads the files again. If this fails, the certificates in use stay as they are.
  absl::Status Reload();

  Context context(Protocol protocol) const;
  bool wants_client_certificates() const { return !files_.client_ca.empty(); }

  // The validity of the certificate in use. `serial` is in hexadecimal.
  struct Validity {
    std::string serial;
    absl::Time not_before, not_after;
  };
  Validity validity() const { return loaded().validity; }
  // Non-fatal problems of the certificate, one per line: it has expired, or is not yet valid.
  std::vector<std::string> Warnings(absl::Time now = absl::Now()) const;

 private:
  struct Loaded {
    std::array<Context, 2> contexts;  // indexed by Protocol
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
