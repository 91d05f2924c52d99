// Certificates made on the fly, and the client's end of a session.
#ifndef QUANTD_TESTS_SERVER_ACCESS_TESTING_H_
#define QUANTD_TESTS_SERVER_ACCESS_TESTING_H_

#include <openssl/ssl.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/access/certificates.h"
#include "server/access/pem.h"
#include "server/access/session.h"

namespace quantd::access {

// A folder that is removed with the test.
class Folder {
 public:
  Folder();
  ~Folder();
  std::string path(absl::string_view name) const { return (path_ / std::string(name)).string(); }
  // Writes a file and returns its path.
  std::string Put(absl::string_view name, absl::string_view text) const;

 private:
  std::filesystem::path path_;
};

// A key and a certificate of it.
struct Pair {
  KeyPointer key;
  X509Pointer certificate;
  std::string key_pem, certificate_pem;
};
struct Asked {
  const char* name = "test";
  const Pair* issuer = nullptr;  // null: signs itself, may sign others
  int from_hours = -1;
  int to_hours = 24;
};
Pair Make(const Asked& asked);

// The other end of `fd`, driven step by step.
class TlsClient {
 public:
  struct Options {
    const char* protocols = "\x02h2";  // ALPN's form; "": none
    const Pair* certificate = nullptr;
    int version = 0;  // the only one; 0: any
  };
  TlsClient(int fd, const Options& options);
  ~TlsClient();

  SSL* ssl() const { return ssl_.get(); }
  // Until both are done, the server gives up, or nothing moves. Returns the server's last step.
  Session::Step ShakeHands(Session& server);
  // As much as the socket takes.
  size_t Write(absl::string_view text);
  std::string Read(size_t most = 1 << 20);

 private:
  const int fd_;
  std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Free<SSL_free>> ssl_;
};

// Makes records that no library would send, encrypted as its client's. Create it before the
// client's handshake; it leaves the client only AES-128-GCM.
class Sealer {
 public:
  explicit Sealer(const TlsClient& client);
  // The client itself has sent `records` records under the last keys.
  void Skip(uint64_t records) { number_ += records; }
  std::string Seal(uint8_t type, absl::string_view bytes);

 private:
  SSL* const ssl_;
  std::string secret_;  // for TLS 1.3
  uint64_t number_ = 0;
};

// Two connected sockets that do not block.
struct Sockets {
  explicit Sockets(int buffer_bytes = 0);
  ~Sockets();
  int server = -1;
  int client = -1;
  void CloseClient();
};

}  // namespace quantd::access

#endif  // QUANTD_TESTS_SERVER_ACCESS_TESTING_H_
