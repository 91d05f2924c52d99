// Who may come in: certificates and tokens of the options' files, and the watch that reads them
// again. It is there before everything else, so that its files are read, and complained about,
// before a socket is bound.
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

  // Reads the files for the first time. INVALID_ARGUMENT, in one line, for what can't be used.
  absl::Status Open();
  // Sees whether they have changed, and reads them again. Once a second, from one thread.
  void Look(metrics::Metrics& metrics);
  // The next Look reads them again. False: there is nothing to read. From any thread.
  bool Reread();
  // What a probe of this address begins with: a TLS client's hello, or nothing.
  std::string ProbeHello(const std::string& address) const;
  // When the certificate ends, in seconds since 1970; 0: there is none.
  double CertificateEnd() const;
  // Warns, if there is no TLS: other machines can reach `addresses`.
  void WarnOfPlainText(const std::vector<std::string>& addresses) const;

  std::unique_ptr<access::Certificates> certificates;  // null: no TLS
  std::unique_ptr<access::Tokens> tokens;              // null: nobody needs one

 private:
  // What is not right changes nothing.
  // Whether the files were read, good or bad.
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
