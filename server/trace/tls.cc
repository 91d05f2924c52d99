#include "server/trace/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quantd::trace {
namespace {

// ALPN: a length and a name. Gateways that also support HTTP/2 ask for the protocol.
constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

absl::Status Trust(SSL_CTX& context, const TlsFile& ca) {
  if (ca.path.empty()) {
    if (SSL_CTX_set_default_verify_paths(&context) == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the system's authorities can't be read: ", access::TakeError()));
  }
  auto authorities = access::ReadCertificates(ca.path, ca.variable);
  if (!authorities.ok()) return authorities.status();
  X509_STORE* const store = SSL_CTX_get_cert_store(&context);
  for (const access::X509Pointer& authority : *authorities) {
    if (X509_STORE_add_cert(store, authority.get()) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(ca.variable, " is '", ca.path, "': ", access::TakeError()));
    }
  }
  return absl::OkStatus();
}

absl::Status Show(SSL_CTX& context, const TlsFile& certificate, const TlsFile& key) {
  if (certificate.path.empty() != key.path.empty()) {
    const TlsFile& given = certificate.path.empty() ? key : certificate;
    return absl::InvalidArgumentError(absl::StrCat(
        given.variable, " is set alone: a certificate and its key must be set together"));
  }
  if (certificate.path.empty()) return absl::OkStatus();
  auto chain = access::ReadCertificates(certificate.path, certificate.variable);
  if (!chain.ok()) return chain.status();
  auto secret = access::ReadKey(key.path, key.variable);
  if (!secret.ok()) return secret.status();
  bool good = SSL_CTX_use_certificate(&context, chain->front().get()) == 1;
  for (size_t i = 1; good && i < chain->size(); ++i) {
    good = SSL_CTX_add1_chain_cert(&context, (*chain)[i].get()) == 1;
  }
  if (good && SSL_CTX_use_PrivateKey(&context, secret->get()) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(key.variable, " is '", key.path,
                                                 "', which does not belong to ", certificate.path,
                                                 ": ", access::TakeError()));
}

}  // namespace

absl::StatusOr<TlsContext> MakeTlsContext(const TlsFiles& files) {
  TlsContext context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return absl::UnavailableError("no memory is left");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // Only the status of a response is used, so it does not matter if the rest is cut off.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  if (absl::Status status = Trust(*context, files.ca); !status.ok()) return status;
  if (absl::Status status = Show(*context, files.certificate, files.key); !status.ok()) {
    return status;
  }
  return context;
}

Tls MakeTls(SSL_CTX& context, const std::string& host) {
  Tls tls(SSL_new(&context));
  if (tls == nullptr) return nullptr;
  // An address can't be sent as a server name, and is in another field of a certificate.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls.get()), host.c_str()) != 1) {
    ERR_clear_error();
    if (SSL_set_tlsext_host_name(tls.get(), host.c_str()) != 1 ||
        SSL_set1_host(tls.get(), host.c_str()) != 1) {
      return nullptr;
    }
  }
  SSL_set_alpn_protos(tls.get(), kHttp11, sizeof(kHttp11));
  return tls;
}

}  // namespace quantd::trace
