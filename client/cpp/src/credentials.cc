#include "credentials.h"

#include <grpcpp/security/credentials.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "status_macros.h"

namespace quantd::client {
namespace {

std::string PathOf(const std::string& given, const char* variable) {
  const char* const found = std::getenv(variable);
  return given.empty() && found != nullptr ? found : given;
}

// Empty if there is no path.
absl::StatusOr<std::string> ReadPem(const std::string& path, const char* name) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": can't read ", path, ": ", std::strerror(errno)));
  }
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!absl::StrContains(content, "-----BEGIN ")) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", path, " is not a PEM file"));
  }
  return content;
}

}  // namespace

absl::StatusOr<Credentials> CredentialsOf(const TlsOptions& tls) {
  const std::string ca = PathOf(tls.ca_file, "QUANTD_TLS_CA");
  const std::string certificate = PathOf(tls.certificate_file, "QUANTD_TLS_CERT");
  const std::string key = PathOf(tls.key_file, "QUANTD_TLS_KEY");
  if (ca.empty() && certificate.empty() && key.empty()) {
    return Credentials{grpc::InsecureChannelCredentials(), false};
  }
  if (certificate.empty() != key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("certificate_file is \"", certificate,
                                                   "\", key_file is \"", key,
                                                   "\": a client's certificate needs both"));
  }
  QUANTD_ASSIGN_OR_RETURN(const std::string roots, ReadPem(ca, "ca_file"));
  QUANTD_ASSIGN_OR_RETURN(const std::string chain, ReadPem(certificate, "certificate_file"));
  QUANTD_ASSIGN_OR_RETURN(const std::string private_key, ReadPem(key, "key_file"));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = roots;
  options.pem_cert_chain = chain;
  options.pem_private_key = private_key;
  return Credentials{grpc::SslCredentials(options), true};
}

}  // namespace quantd::client
