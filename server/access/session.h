// The server side of one TLS connection. Once the handshake is over, the owner uses it like a
// socket: Read and Write return what readv and sendmsg would, and set errno.
//
//   auto session = Session::Accept(*certificates, Protocol::kGrpc, fd);
//   while (session->Handshake() == Session::Step::kAgain) { wait; }
//   session->Read(pieces);
//
// A step waits for bytes from the socket, or for room in the socket if wants_write() is true.
#ifndef QUANTD_SERVER_ACCESS_SESSION_H_
#define QUANTD_SERVER_ACCESS_SESSION_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/access/certificates.h"
#include "server/access/handshake_limit.h"

struct ssl_st;         // SSL
struct bio_st;         // BIO
struct bio_method_st;  // BIO_METHOD

namespace quantd::access {

// Why a handshake failed.
enum class Refusal : uint8_t {
  kPlainText,      // the peer did not speak TLS
  kNoCertificate,  // the client has shown no certificate
  kCertificate,    // its certificate is not of --tls_client_ca, has expired, or is not for clients
  kProtocol,       // no version, cipher or protocol (ALPN) in common, or a protocol error
  kClient,         // the client refused: it does not trust the server's certificate, for example
};
inline constexpr size_t kRefusals = 5;

// For one thread at a time. The owner of the socket closes it.
class Session {
 public:
  enum class Step : uint8_t {
    kDone,
    kAgain,
    kRefused,  // refusal() and reason() say why
    kGone,     // the peer has gone; there is nothing to report
  };

  // Returns nullptr if the system is out of memory. REQUIRES: the socket does not block.
  static std::unique_ptr<Session> Accept(const Certificates& certificates, Protocol protocol,
                                         int fd);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Performs one step of the handshake. After kRefused the alert for the client is in the socket.
  Step Handshake();
  bool established() const { return established_; }
  Refusal refusal() const { return refusal_; }
  // The reason in words. It contains nothing that the peer sent.
  const std::string& reason() const { return reason_; }
  // Whether the client has shown a certificate. Such a certificate is valid.
  bool has_client_certificate() const;
  // Whether the peer began with plain text. Any answer to it is in plain text, too.
  bool plain_text() const { return !established_ && verdict_ == HandshakeLimit::Verdict::kNoTls; }

  // REQUIRES: established().

  // Fills the pieces in order with the bytes that are available. Returns 0 if the peer has ended,
  // and -1 with errno (EAGAIN among others). The bytes of a record are decrypted directly into the
  // pieces. After too many crumbs it reads nothing more until TakeCrumbs is called.
  ssize_t Read(absl::Span<const iovec> pieces);
  // Whether there may be more bytes to read even if the socket has none.
  bool more_to_read() const { return more_to_read_; }
  // Writes as many bytes of the pieces as the socket takes. After EAGAIN the next call must pass
  // the same bytes first; they may be at another address, and more may follow.
  ssize_t Write(absl::Span<const iovec> pieces);

  // Whether the last step of the handshake waits for room in the socket, not for bytes.
  bool wants_write() const { return wants_write_; }
  // Whether the last read waits for room, or the last write for bytes, because keys change.
  bool read_wants_write() const { return read_wants_write_; }
  bool write_wants_read() const { return write_wants_read_; }

  // Crumbs since the last call: records with fewer than 64 bytes of data count one each. A change
  // of keys, which costs more, counts ten.
  int TakeCrumbs();

  // Tells the peer that no more data will follow, if this is possible without waiting.
  void SayEnd();

 private:
  static constexpr size_t kCrumbBytes = 64;
  static constexpr int kOfKeyUpdate = 10;
  // A read returns after this number of crumbs with what it has.
  static constexpr int kMostCrumbs = 256;

  Session(int fd, Protocol protocol) : fd_(fd), protocol_(protocol) {}
  ssize_t ReadOnce(void* to, size_t size);
  // The result of an operation that made no progress, with errno EAGAIN, or EPROTO if it failed.
  ssize_t Stuck(int result);
  Step Refuse(Refusal refusal, absl::string_view reason);
  Step RefuseForError();

  // The BIO method through which OpenSSL uses the socket.
  static const bio_method_st* SocketMethod();
  static int Receive(bio_st* bio, char* to, int size);
  static int Send(bio_st* bio, const char* from, int size);
  // OpenSSL calls this for every record and message.
  static void OnMessage(int sent, int version, int type, const void* data, size_t size, ssl_st* ssl,
                        void* session);
  // OpenSSL calls this when a handshake begins.
  static void OnState(const ssl_st* ssl, int where, int result);

  const int fd_;
  const Protocol protocol_;
  ssl_st* ssl_ = nullptr;
  HandshakeLimit limit_;
  HandshakeLimit::Verdict verdict_ = HandshakeLimit::Verdict::kFine;
  bool established_ = false;
  bool failed_ = false;
  bool renegotiates_ = false;  // the peer began another handshake: an error (RFC 9113, 9.2.1)
  bool dry_ = false;           // the socket had no bytes at the last read
  bool ended_ = false;         // the peer has closed the connection
  bool wants_write_ = false;
  bool read_wants_write_ = false;
  bool write_wants_read_ = false;
  bool more_to_read_ = false;
  int crumbs_ = 0;
  size_t record_bytes_ = 0;  // bytes read of the latest record
  Refusal refusal_ = Refusal::kProtocol;
  std::string reason_;
};

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_SESSION_H_
