#include "server/access/certificates.h"

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstring>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/access/handshake_limit.h"
#include "server/access/pem.h"

namespace quantd::access {
namespace {

constexpr absl::string_view kCertificateFlag = "--tls_cert";
constexpr absl::string_view kKeyFlag = "--tls_key";
constexpr absl::string_view kClientCaFlag = "--tls_client_ca";

// Of the ciphers of TLS 1.2 only those that HTTP/2 allows (RFC 9113, appendix A); TLS 1.3 has no
// others.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
// Longer chains of client certificates are refused.
constexpr int kDepth = 8;

// Names in ALPN's encoding: each is preceded by its length in a byte.
constexpr absl::string_view kHttp2 = "\x02h2";
constexpr absl::string_view kHttp1 = "\x08http/1.1";

int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned offered_size, void* wanted) {
  const auto& name = *static_cast<const absl::string_view*>(wanted);
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(name.data()),
                            static_cast<unsigned>(name.size()), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

// `resumes`: whether clients may resume their sessions.
void SetManners(SSL_CTX* context, Protocol protocol, bool resumes) {
  static const absl::string_view names[] = {kHttp2, kHttp1};
  const auto index = static_cast<size_t>(protocol);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
  // A record is written as far as the socket takes it, even if its bytes have moved; empty buffers
  // are freed; and a record without data ends a read, so that many of them can't prolong it.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_read_ahead(context, 1);  // reads a record in one system call, not in two
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // clients keep them, as tickets
  SSL_CTX_set_num_tickets(context, resumes ? 1 : 0);
  if (!resumes) SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>(&names[index][1]),
                                 2);
  SSL_CTX_set_max_cert_list(context, HandshakeLimit::kCertificateBytes);
  SSL_CTX_set_cipher_list(context, kCiphers);
  SSL_CTX_set_alpn_select_cb(context, ChooseProtocol,
                             const_cast<absl::string_view*>(&names[index]));
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfiniteFuture();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

// In hexadecimal, as openssl prints it.
std::string Serial(const X509* certificate) {
  BIGNUM* const number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  char* const text = number == nullptr ? nullptr : BN_bn2hex(number);
  std::string serial = text == nullptr ? "?" : text;
  OPENSSL_free(text);
  BN_free(number);
  return serial;
}

}  // namespace

absl::StatusOr<Certificates::Loaded> Certificates::Read(const TlsFiles& files) {
  const auto chain = ReadCertificates(files.certificate, kCertificateFlag);
  if (!chain.ok()) return chain.status();
  const auto key = ReadKey(files.key, kKeyFlag);
  if (!key.ok()) return key.status();
  std::vector<X509Pointer> authorities;
  if (!files.client_ca.empty()) {
    auto read = ReadCertificates(files.client_ca, kClientCaFlag);
    if (!read.ok()) return read.status();
    authorities = *std::move(read);
  }
  X509* const own = chain->front().get();
  if (X509_check_private_key(own, key->get()) != 1) {
    ERR_clear_error();
    return Wrong(files.key,
                 absl::StrCat("is not the key of the certificate in ", files.certificate),
                 kKeyFlag);
  }
  Loaded loaded;
  for (const Protocol protocol : {Protocol::kGrpc, Protocol::kHttp}) {
    Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    if (context == nullptr) return Wrong(files.certificate, TakeError(), kCertificateFlag);
    // When a session is resumed, its certificate is not checked again, even if it has expired.
    SetManners(context.get(), protocol, authorities.empty());
    if (SSL_CTX_use_certificate(context.get(), own) != 1) {
      return Wrong(files.certificate, TakeError(), kCertificateFlag);
    }
    for (size_t i = 1; i < chain->size(); ++i) {
      if (SSL_CTX_add1_chain_cert(context.get(), (*chain)[i].get()) != 1) {
        return Wrong(files.certificate, absl::StrCat("certificate ", i + 1, ": ", TakeError()),
                     kCertificateFlag);
      }
    }
    if (SSL_CTX_use_PrivateKey(context.get(), key->get()) != 1) {
      return Wrong(files.key, TakeError(), kKeyFlag);
    }
    for (const X509Pointer& authority : authorities) {
      if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get()) != 1 ||
          SSL_CTX_add_client_CA(context.get(), authority.get()) != 1) {
        return Wrong(files.client_ca, TakeError(), kClientCaFlag);
      }
    }
    if (!authorities.empty()) {
      const int always = protocol == Protocol::kGrpc ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
      SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | always, nullptr);
      SSL_CTX_set_verify_depth(context.get(), kDepth);
    }
    loaded.contexts[static_cast<size_t>(protocol)] = std::move(context);
  }
  loaded.validity = {Serial(own), TimeOf(X509_get0_notBefore(own)),
                     TimeOf(X509_get0_notAfter(own))};
  return loaded;
}

absl::StatusOr<std::unique_ptr<Certificates>> Certificates::Load(TlsFiles files) {
  std::unique_ptr<Certificates> certificates(new Certificates(std::move(files)));
  if (absl::Status status = certificates->Reload(); !status.ok()) return status;
  return certificates;
}

absl::Status Certificates::Reload() {
  absl::StatusOr<Loaded> loaded = Read(files_);
  if (!loaded.ok()) return loaded.status();
  const std::lock_guard lock(mutex_);
  loaded_ = *std::move(loaded);
  return absl::OkStatus();
}

Certificates::Context Certificates::context(Protocol protocol) const {
  const std::lock_guard lock(mutex_);
  return loaded_.contexts[static_cast<size_t>(protocol)];
}

std::vector<std::string> Certificates::Warnings(absl::Time now) const {
  const Validity in_use = validity();
  const auto line = [this](absl::string_view what, absl::Time time) {
    return absl::StrCat(files_.certificate, ": the certificate ", what, " ",
                        absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", time, absl::UTCTimeZone()),
                        " (--tls_cert)");
  };
  std::vector<std::string> warnings;
  if (in_use.not_after < now) warnings.push_back(line("expired at", in_use.not_after));
  if (in_use.not_before > now) {
    warnings.push_back(line("is not valid before", in_use.not_before));
  }
  return warnings;
}

}  // namespace quantd::access
