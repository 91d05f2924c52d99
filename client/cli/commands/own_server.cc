#include "commands/own_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

namespace tls = ::grpc::experimental;

// The first certificate of a PEM text, without white space; empty if there is none.
std::string FirstCertificate(absl::string_view pem) {
  const size_t begin = pem.find("-----BEGIN CERTIFICATE-----");
  if (begin == absl::string_view::npos) return "";
  const absl::string_view certificate = pem.substr(begin, pem.find("-----END", begin) - begin);
  return absl::StrReplaceAll(certificate, {{"\r", ""}, {"\n", ""}, {"\t", ""}, {" ", ""}});
}

// Trusts exactly one certificate.
class OneCertificate : public tls::ExternalCertificateVerifier {
 public:
  explicit OneCertificate(std::string certificate) : certificate_(std::move(certificate)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(::grpc::Status)>,
              ::grpc::Status* status) override {
    const ::grpc::string_ref peer = request->peer_cert();
    const bool same = FirstCertificate({peer.data(), peer.size()}) == certificate_;
    *status = same ? ::grpc::Status::OK
                   : ::grpc::Status(::grpc::StatusCode::UNAUTHENTICATED,
                                    "the server's certificate is not that of QUANTD_TLS_CERT");
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string certificate_;
};

absl::StatusOr<std::string> Read(const char* variable) {
  const char* const path = std::getenv(variable);
  if (path == nullptr || *path == '\0') return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat(variable, ": can't read ", path, ": ", std::strerror(errno)));
  }
  if (!absl::StrContains(content, "-----BEGIN ")) {
    return absl::InvalidArgumentError(absl::StrCat(variable, ": ", path, " is not a PEM file"));
  }
  return content;
}

}  // namespace

absl::StatusOr<std::string> AddressOfListener(absl::string_view listen) {
  const absl::string_view first = listen.substr(0, listen.find(','));
  const auto wrong = [&first](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("QUANTD_LISTEN is '", first, "', ", what, "; use --address=HOST:PORT"));
  };
  if (first == "unix:") return wrong("which names no socket");
  if (absl::StartsWith(first, "unix:")) return std::string(first);
  const size_t colon = first.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(first.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return wrong("must be HOST:PORT or unix:/PATH");
  }
  if (port == 0) return wrong("a port that the server picks");
  const absl::string_view host = first.substr(0, colon);
  if (host == "0.0.0.0" || host == "[::]" || host == "::") return absl::StrCat("127.0.0.1:", port);
  // Without brackets, the server takes everything before the last colon for the host.
  const bool bare = absl::StrContains(host, ':') && host.front() != '[';
  return absl::StrCat(bare ? "[" : "", host, bare ? "]:" : ":", port);
}

absl::StatusOr<std::shared_ptr<::grpc::Channel>> ChannelToOwnServer(const std::string& address) {
  const absl::StatusOr<std::string> chain = Read("QUANTD_TLS_CERT");
  ::grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the server is on this machine
  if (absl::StartsWith(address, "unix:") || (chain.ok() && chain->empty())) {
    return ::grpc::CreateCustomChannel(address, ::grpc::InsecureChannelCredentials(), arguments);
  }
  if (!chain.ok()) return chain.status();
  QUANTD_ASSIGN_OR_RETURN(const std::string key, Read("QUANTD_TLS_KEY"));
  const std::string certificate = FirstCertificate(*chain);
  if (certificate.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("QUANTD_TLS_CERT: ", std::getenv("QUANTD_TLS_CERT"), " has no certificate"));
  }
  tls::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);  // by authority and name: its exact bytes are known
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<OneCertificate>(certificate));
  if (!key.empty()) {
    options.set_certificate_provider(std::make_shared<tls::StaticDataCertificateProvider>(
        std::vector<tls::IdentityKeyCertPair>{{key, *chain}}));
    options.watch_identity_key_cert_pairs();
  }
  return ::grpc::CreateCustomChannel(address, tls::TlsCredentials(options), arguments);
}

}  // namespace quantd::cli
