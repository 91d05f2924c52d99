// TLS to the collector.
#ifndef QUANTD_SERVER_TRACE_TLS_H_
#define QUANTD_SERVER_TRACE_TLS_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/access/pem.h"

namespace quantd::trace {

// Paths of PEM files, and the variables that named them.
struct TlsFile {
  std::string path;
  std::string variable;
};
struct TlsFiles {
  TlsFile ca;           // authorities that are trusted; no path: the system's
  TlsFile certificate;  // with its chain, that this server shows; no path: none
  TlsFile key;          // of the certificate
};

using TlsContext = std::unique_ptr<SSL_CTX, access::Free<SSL_CTX_free>>;
using Tls = std::unique_ptr<SSL, access::Free<SSL_free>>;

// Reads the files. INVALID_ARGUMENT, in one line that names variable and file, when one can't be
// used.
absl::StatusOr<TlsContext> MakeTlsContext(const TlsFiles& files);

// For one connection to that host, a name or an address: its certificate must be good for it. Null
// when no memory is left.
Tls MakeTls(SSL_CTX& context, const std::string& host);

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_TLS_H_
