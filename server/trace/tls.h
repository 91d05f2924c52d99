// TLS to the collector.
#ifndef QUANTD_SERVER_TRACE_TLS_H_
#define QUANTD_SERVER_TRACE_TLS_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/access/pem.h"

namespace quantd::trace {

// The path of a PEM file, and the variable that named it.
struct TlsFile {
  std::string path;
  std::string variable;
};
struct TlsFiles {
  TlsFile ca;           // trusted authorities; no path: the system's
  TlsFile certificate;  // this server's certificate with its chain; no path: none
  TlsFile key;          // the certificate's key
};

using TlsContext = std::unique_ptr<SSL_CTX, access::Free<SSL_CTX_free>>;
using Tls = std::unique_ptr<SSL, access::Free<SSL_free>>;

// Reads the files. Returns INVALID_ARGUMENT, in one line that names the variable and the file, if
// one can't be used.
absl::StatusOr<TlsContext> MakeTlsContext(const TlsFiles& files);

// For one connection to the host, a name or an address; the host's certificate must be valid for
// it. Null if the system is out of memory.
Tls MakeTls(SSL_CTX& context, const std::string& host);

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_TLS_H_
