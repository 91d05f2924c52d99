// Access control: the certificates and tokens from the options' files, and the watch that
// reloads them. It is made first, so that errors in the files are reported before a socket is
// bound.
#ifndef QUANTD_SERVER_TLS_AND_TOKENS_H_
#define QUANTD_SERVER_TLS_AND_TOKENS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/access/certificates.h"
#include "server/access/file_watch.h"
#include "server/access/tokens.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/options/options.h"

namespace quantd::server {

class TlsAndTokens {
 public:
  explicit TlsAndTokens(const Options& options)
      : tls_{options.tls_cert, options.tls_key, options.tls_client_ca},
        token_file_(options.auth_token_file) {}

  // Reads the files for the first time. Returns INVALID_ARGUMENT, in one line, if one can't be
  // used.
  absl::Status Open();
  // Checks whether the files have changed, and reloads them. Call once a second, from one thread.
  void Look(metrics::Metrics& metrics);
  // Makes the next Look reload them. False: there are no files. Safe from any thread.
  bool Reread();
  // When the certificate expires, in seconds since 1970; 0: there is no certificate.
  double CertificateEnd() const;
  // Logs a warning if there is no TLS, because other machines can reach `addresses`.
  void WarnOfPlainText(const std::vector<std::string>& addresses) const;

  std::unique_ptr<access::Certificates> certificates;  // null: no TLS
  std::unique_ptr<access::Tokens> tokens;              // null: no token is needed

 private:
  // Returns whether the files were read, valid or not. Invalid files change
  // nothing.
  bool ReloadCertificates();
  bool ReloadTokens();
  void Warn() const;
  log::Fields InUse() const;

  const access::TlsFiles tls_;
  const std::string token_file_;
  metrics::Metrics* metrics_ = nullptr;
  access::FileWatch watch_;
};

}  // namespace quantd::server

#endif  // QUANTD_SERVER_TLS_AND_TOKENS_H_
