#include "testing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

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

std::string Derive(const char* how, std::initializer_list<OSSL_PARAM> parameters, size_t size) {
  EVP_KDF* const function = EVP_KDF_fetch(nullptr, how, nullptr);
  EVP_KDF_CTX* const context = EVP_KDF_CTX_new(function);
  std::string derived(size, '\0');
  EXPECT_EQ(EVP_KDF_derive(context, reinterpret_cast<unsigned char*>(derived.data()), size,
                           std::data(parameters)),
            1);
  EVP_KDF_CTX_free(context);
  EVP_KDF_free(function);
  return derived;
}

OSSL_PARAM Bytes(const char* name, const std::string& value) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(value.data()), value.size());
}

OSSL_PARAM Text(const char* name, const char* value) {
  return OSSL_PARAM_construct_utf8_string(name, const_cast<char*>(value), 0);
}

// The client's key and the fixed part of its nonces: RFC 5246, 6.3 and RFC 8446, 7.3.
std::pair<std::string, std::string> KeysOf(SSL* ssl, const std::string& secret) {
  if (!secret.empty()) {
    const auto expand = [&](absl::string_view label, char size) {
      const std::string info =
          absl::StrCat(std::string{'\0', size, static_cast<char>(6 + label.size())}, "tls13 ",
                       label, absl::string_view("\0", 1));
      return Derive("HKDF",
                    {Text("mode", "EXPAND_ONLY"), Text("digest", "SHA256"), Bytes("key", secret),
                     Bytes("info", info), OSSL_PARAM_construct_end()},
                    static_cast<size_t>(size));
    };
    return {expand("key", 16), expand("iv", 12)};
  }
  std::string master(48, '\0'), seed = "key expansion" + std::string(64, '\0');
  auto* const randoms = reinterpret_cast<unsigned char*>(seed.data()) + 13;
  SSL_SESSION_get_master_key(SSL_get_session(ssl), reinterpret_cast<unsigned char*>(master.data()),
                             master.size());
  SSL_get_server_random(ssl, randoms, 32);
  SSL_get_client_random(ssl, randoms + 32, 32);
  const std::string block = Derive("TLS1-PRF",
                                   {Text("digest", "SHA256"), Bytes("secret", master),
                                    Bytes("seed", seed), OSSL_PARAM_construct_end()},
                                   40);
  return {block.substr(0, 16), block.substr(32, 4)};
}

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  while (bytes-- != 0) text += static_cast<char>(value >> 8 * bytes);
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
    EXPECT_EQ(ERR_peek_error(), 0U) << "the server leaves an error to the next caller";
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

Sealer::Sealer(const TlsClient& client) : ssl_(client.ssl()) {
  SSL_set_cipher_list(ssl_, "ECDHE-ECDSA-AES128-GCM-SHA256");
  SSL_set_ciphersuites(ssl_, "TLS_AES_128_GCM_SHA256");
  SSL_set_app_data(ssl_, this);
  SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(ssl_), [](const SSL* ssl, const char* line) {
    const absl::string_view text(line);
    if (!absl::StartsWith(text, "CLIENT_TRAFFIC_SECRET_0 ")) return;
    // Not Abseil's: the release of 2024 deprecates what that of 2022 offers.
    std::string& secret = static_cast<Sealer*>(SSL_get_app_data(ssl))->secret_;
    secret.resize(text.size() / 2);
    size_t size = 0;
    OPENSSL_hexstr2buf_ex(reinterpret_cast<unsigned char*>(secret.data()), secret.size(), &size,
                          line + text.rfind(' ') + 1, '\0');
    secret.resize(size);
  });
}

std::string Sealer::Seal(uint8_t type, absl::string_view bytes) {
  const auto [key, fixed] = KeysOf(ssl_, secret_);
  const bool newer = !secret_.empty();
  const std::string number = BigEndian(number_++, 8);
  std::string plain(bytes), nonce = fixed, head, known;
  if (newer) {
    plain += static_cast<char>(type);
    for (size_t i = 0; i < 8; ++i) nonce[4 + i] ^= number[i];
    known = head = "\x17\x03\x03" + BigEndian(plain.size() + 16, 2);
  } else {
    nonce += number;
    head =
        static_cast<char>(type) + absl::StrCat("\x03\x03", BigEndian(plain.size() + 24, 2), number);
    known = number + static_cast<char>(type) + "\x03\x03" + BigEndian(plain.size(), 2);
  }
  const auto data = [](const std::string& text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  std::string sealed(plain.size() + 16, '\0');
  auto* const to = reinterpret_cast<unsigned char*>(sealed.data());
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  int size = 0;
  EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nullptr, data(key), data(nonce));
  EVP_EncryptUpdate(context, nullptr, &size, data(known), static_cast<int>(known.size()));
  EVP_EncryptUpdate(context, to, &size, data(plain), static_cast<int>(plain.size()));
  EVP_EncryptFinal_ex(context, to + plain.size(), &size);
  EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, 16, to + plain.size());
  EVP_CIPHER_CTX_free(context);
  return head + sealed;
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
