// TLS of one connection, from the server's side. To its owner it looks like the socket: Read and
// Write return what readv and sendmsg would, with errno, once the handshake is over.
//
//   auto session = Session::Accept(*certificates, Protocol::kGrpc, fd);
//   while (session->Handshake() == Session::Step::kAgain) { wait; }
//   session->Read(pieces);
//
// Whatever is waited for is a byte from the socket, or room in it when wants_write().
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

// Why a handshake came to nothing.
enum class Refusal : uint8_t {
  kPlainText,      // it was none
  kNoCertificate,  // the client has shown none
  kCertificate,    // the client's is not of --tls_client_ca, has expired, or is not for clients
  kProtocol,       // no version, cipher or protocol (ALPN) in common, or broken rules
  kClient,         // the client said no: it does not take the server's certificate, for example
};
inline constexpr size_t kRefusals = 5;

// One thread at a time. The socket is the owner's, which closes it.
class Session {
 public:
  enum class Step : uint8_t {
    kDone,
    kAgain,
    kRefused,  // refusal() and reason() say why
    kGone,     // the peer is: nothing to say
  };

  // nullptr when the system has no memory left. The socket does not block.
  static std::unique_ptr<Session> Accept(const Certificates& certificates, Protocol protocol,
                                         int fd);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A step of the handshake. After kRefused what is said to the client is in its socket.
  Step Handshake();
  bool established() const { return established_; }
  Refusal refusal() const { return refusal_; }
  // In words, with nothing of what the peer sent in it.
  const std::string& reason() const { return reason_; }
  // Whether the client has shown a certificate, which then is a right one.
  bool has_client_certificate() const;
  // The peer has begun with plain text: it is answered in plain text, if at all.
  bool plain_text() const { return !established_ && verdict_ == HandshakeLimit::Verdict::kNoTls; }

  // REQUIRES: established().

  // Fills the pieces in their order as far as it goes. 0: the peer has ended; -1: errno, EAGAIN
  // among them. A record's bytes are written once, to the place where they are wanted. After too
  // many crumbs it reads nothing more until they are taken.
  ssize_t Read(absl::Span<const iovec> pieces);
  // Whether there may be more to read, whatever the socket says.
  bool more_to_read() const { return more_to_read_; }
  // Writes pieces as far as the socket takes them. After EAGAIN the bytes that are given next must
  // begin with the same ones; they may lie elsewhere, and there may be more.
  ssize_t Write(absl::Span<const iovec> pieces);

  // What the handshake's last step waits for, if not for bytes.
  bool wants_write() const { return wants_write_; }
  // The last read waits for room in the socket, the last write for bytes: a change of keys.
  bool read_wants_write() const { return read_wants_write_; }
  bool write_wants_read() const { return write_wants_read_; }

  // Records that carried (almost) nothing since this was asked last: fewer than 64 bytes of data; a
  // change of keys, which costs more, counts tenfold.
  int TakeCrumbs();

  // Says that nothing more will come, if that can be said at once.
  void SayEnd();

 private:
  static constexpr size_t kCrumbBytes = 64;
  static constexpr int kOfKeyUpdate = 10;
  // A read returns with what it has after so many.
  static constexpr int kMostCrumbs = 256;

  Session(int fd, Protocol protocol) : fd_(fd), protocol_(protocol) {}
  ssize_t ReadOnce(void* to, size_t size);
  // What an operation that did not get on waits for: errno EAGAIN; or why it failed.
  ssize_t Stuck(int result);
  Step Refuse(Refusal refusal, absl::string_view reason);
  Step RefuseForError();
  bool IsProbe() const;

  // The socket, as OpenSSL uses it.
  static const bio_method_st* SocketMethod();
  static int Receive(bio_st* bio, char* to, int size);
  static int Send(bio_st* bio, const char* from, int size);
  // What OpenSSL says of every record and message.
  static void OnMessage(int sent, int version, int type, const void* data, size_t size, ssl_st* ssl,
                        void* session);
  // What it says of handshakes that begin.
  static void OnState(const ssl_st* ssl, int where, int result);

  const int fd_;
  const Protocol protocol_;
  ssl_st* ssl_ = nullptr;
  HandshakeLimit limit_;
  HandshakeLimit::Verdict verdict_ = HandshakeLimit::Verdict::kFine;
  bool established_ = false;
  bool failed_ = false;
  bool renegotiates_ = false;  // the peer has begun another handshake: it is over (RFC 9113, 9.2.1)
  bool dry_ = false;           // the socket had nothing when it was read last
  bool ended_ = false;         // the peer has closed it
  bool wants_write_ = false;
  bool read_wants_write_ = false;
  bool write_wants_read_ = false;
  bool more_to_read_ = false;
  int crumbs_ = 0;
  size_t record_bytes_ = 0;  // read of the record that came last
  Refusal refusal_ = Refusal::kProtocol;
  std::string reason_;
};

// A client's first bytes, for who asks whether a server of kGrpc answers at all and hangs up then,
// which is not noted. Empty when the system has no memory left.
std::string ProbeHello();

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_SESSION_H_
