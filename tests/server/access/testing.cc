#include "testing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

namespace quantd::access {
namespace {

template <typename Write>
std::string Pem(Write write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);  // NOLINT(google-runtime-int): OpenSSL's
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

}  // namespace

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "quantd-access-XXXXXX").string();
  path_ = mkdtemp(name.data());
}

Folder::~Folder() { std::filesystem::remove_all(path_); }

std::string Folder::Put(absl::string_view name, absl::string_view text) const {
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

Pair Make(const Asked& asked) {
  static int serial = 0x1000;
  Pair pair;
  pair.key.reset(EVP_EC_gen("P-256"));
  pair.certificate.reset(X509_new());
  X509* const own = pair.certificate.get();
  X509_set_version(own, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(own), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(own), asked.from_hours * 3600L);
  X509_gmtime_adj(X509_getm_notAfter(own), asked.to_hours * 3600L);
  X509_set_pubkey(own, pair.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(own), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(asked.name), -1, -1, 0);
  const X509* const issuer = asked.issuer == nullptr ? own : asked.issuer->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(issuer));
  X509_EXTENSION* const constraints =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints,
                          asked.issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  X509_add_ext(own, constraints, -1);
  X509_EXTENSION_free(constraints);
  X509_sign(own, (asked.issuer == nullptr ? pair : *asked.issuer).key.get(), EVP_sha256());
  pair.certificate_pem = Pem([&](BIO* bio) { PEM_write_bio_X509(bio, own); });
  pair.key_pem = Pem([&](BIO* bio) {
    PEM_write_bio_PrivateKey(bio, pair.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return pair;
}

TlsClient::TlsClient(int fd, const Options& options)
    : fd_(fd), context_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX_set_mode(context_.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (options.certificate != nullptr) {
    SSL_CTX_use_certificate(context_.get(), options.certificate->certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), options.certificate->key.get());
  }
  if (options.version != 0) {
    SSL_CTX_set_min_proto_version(context_.get(), options.version);
    SSL_CTX_set_max_proto_version(context_.get(), options.version);
  }
  ssl_.reset(SSL_new(context_.get()));
  const absl::string_view names = options.protocols;
  SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(names.data()),
                      static_cast<unsigned>(names.size()));
  SSL_set_fd(ssl_.get(), fd_);
  SSL_set_connect_state(ssl_.get());
}

TlsClient::~TlsClient() = default;

Session::Step TlsClient::ShakeHands(Session& server) {
  Session::Step step = Session::Step::kAgain;
  for (int i = 0; i < 100 && step == Session::Step::kAgain; ++i) {
    ERR_clear_error();
    SSL_do_handshake(ssl_.get());
    step = server.Handshake();
    EXPECT_EQ(ERR_peek_error(), 0U) << "the server leaves an error to whoever comes next";
  }
  ERR_clear_error();
  SSL_do_handshake(ssl_.get());
  return step;
}

size_t TlsClient::Write(absl::string_view text) {
  size_t all = 0;
  for (size_t written = 0; all < text.size(); all += written) {
    ERR_clear_error();
    if (SSL_write_ex(ssl_.get(), text.data() + all, text.size() - all, &written) != 1) break;
  }
  return all;
}

std::string TlsClient::Read(size_t most) {
  std::string all(most, '\0');
  size_t size = 0;
  for (size_t count = 0; size < most; size += count) {
    ERR_clear_error();
    if (SSL_read_ex(ssl_.get(), all.data() + size, most - size, &count) != 1) break;
  }
  all.resize(size);
  return all;
}

Sockets::Sockets(int buffer_bytes) {
  int both[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both), 0);
  server = both[0];
  client = both[1];
  for (const int fd : both) {
    if (buffer_bytes == 0) break;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
  }
}

Sockets::~Sockets() {
  close(server);
  CloseClient();
}

void Sockets::CloseClient() {
  if (client >= 0) close(client);
  client = -1;
}

}  // namespace quantd::access
