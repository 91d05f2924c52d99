#include "credentials.h"

#include <grpcpp/security/credentials.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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

absl::Status Wrong(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("auth_token_file: ", path, ": ", why));
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

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& given) {
  const char* const variable = std::getenv("QUANTD_AUTH_TOKEN_FILE");
  std::string path = given.empty() && variable != nullptr ? variable : given;
  if (path.empty()) return nullptr;
  std::unique_ptr<TokenFile> file(new TokenFile(std::move(path)));
  QUANTD_ASSIGN_OR_RETURN(const Stamp stamp, file->StampNow());
  QUANTD_ASSIGN_OR_RETURN(std::string read, file->Read());
  file->stamp_ = stamp;
  file->authorization_ = std::move(read);
  return file;
}

absl::StatusOr<TokenFile::Stamp> TokenFile::StampNow() const {
  struct stat info{};
  if (stat(path_.c_str(), &info) != 0) return Wrong(path_, std::strerror(errno));
  return Stamp(info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

absl::StatusOr<std::string> TokenFile::Read() const {
  std::ifstream file(path_);
  if (!file) return Wrong(path_, std::strerror(errno));
  std::string line;
  while (std::getline(file, line)) {
    const absl::string_view token = absl::StripAsciiWhitespace(line);
    if (token.empty() || token[0] == '#') continue;
    if (!std::all_of(token.begin(), token.end(),
                     [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); })) {
      return Wrong(path_, "has no token: a line of printable ASCII without spaces");
    }
    return absl::StrCat("Bearer ", token);
  }
  return Wrong(path_, "has no token");
}

std::string TokenFile::Authorization() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::StatusOr<Stamp> stamp = StampNow();
  if (stamp.ok() && *stamp != stamp_) {
    if (absl::StatusOr<std::string> read = Read(); read.ok()) {
      authorization_ = *std::move(read);
      stamp_ = *stamp;
    }
  }
  return authorization_;
}

}  // namespace quantd::client
