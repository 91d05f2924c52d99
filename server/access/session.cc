#include "server/access/session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/access/pem.h"

namespace quantd::access {
namespace {

// The most bytes of a record.
constexpr size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;

// Small pieces are combined into one record. There is one buffer per thread, used within one
// function.
std::array<uint8_t, kRecordBytes>& Gathered() {
  thread_local std::array<uint8_t, kRecordBytes> bytes;
  return bytes;
}

// Error codes of alerts from the other side begin here (openssl/sslerr.h).
constexpr int kFirstAlert = 1000;

}  // namespace

std::unique_ptr<Session> Session::Accept(const Certificates& certificates, Protocol protocol,
                                         int fd) {
  std::unique_ptr<Session> session(new (std::nothrow) Session(fd, protocol));
  if (session == nullptr || SocketMethod() == nullptr) return nullptr;
  ERR_clear_error();
  session->ssl_ = SSL_new(certificates.context(protocol).get());
  BIO* const socket = session->ssl_ == nullptr ? nullptr : BIO_new(SocketMethod());
  if (socket == nullptr) {
    ERR_clear_error();
    return nullptr;
  }
  BIO_set_data(socket, session.get());
  BIO_set_init(socket, 1);
  SSL_set_bio(session->ssl_, socket, socket);
  SSL_set_accept_state(session->ssl_);
  SSL_set_msg_callback(session->ssl_, OnMessage);
  SSL_set_msg_callback_arg(session->ssl_, session.get());
  SSL_set_info_callback(session->ssl_, OnState);
  return session;
}

Session::~Session() {
  SSL_free(ssl_);
  ERR_clear_error();
}

// ---- The socket

const BIO_METHOD* Session::SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "quantd");
    if (made == nullptr) return made;
    BIO_meth_set_read(made, Receive);
    BIO_meth_set_write(made, Send);
    BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long {  // NOLINT: OpenSSL's types
      return command == BIO_CTRL_FLUSH ? 1 : 0;
    });
    return made;
  }();
  return method;
}

int Session::Receive(BIO* bio, char* to, int size) {
  Session& self = *static_cast<Session*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self.verdict_ != HandshakeLimit::Verdict::kFine) return -1;
  if (self.crumbs_ > kMostCrumbs) {
    // OpenSSL itself continues from one piece to the next.
    BIO_set_retry_read(bio);
    return -1;
  }
  ssize_t count;
  do {
    count = recv(self.fd_, to, static_cast<size_t>(size), 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) {
    self.dry_ = true;
    BIO_set_retry_read(bio);
  }
  if (count == 0) self.ended_ = true;
  if (count > 0 && !self.established_) {
    const bool ciphered = SSL_version(self.ssl_) == TLS1_2_VERSION;
    self.verdict_ = self.limit_.Look(
        {reinterpret_cast<const uint8_t*>(to), static_cast<size_t>(count)}, ciphered);
    if (self.verdict_ != HandshakeLimit::Verdict::kFine) return -1;
  }
  return static_cast<int>(count);
}

int Session::Send(BIO* bio, const char* from, int size) {
  const Session& self = *static_cast<Session*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t count;
  do {
    count = send(self.fd_, from, static_cast<size_t>(size), MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

void Session::OnMessage(int sent, int, int type, const void* data, size_t size, SSL*,
                        void* session) {
  Session& self = *static_cast<Session*>(session);
  if (sent != 0 || !self.established_) return;
  if (type == SSL3_RT_HEADER) {
    // A record begins, so the previous one is complete.
    if (self.record_bytes_ < kCrumbBytes) ++self.crumbs_;
    self.record_bytes_ = 0;
  } else if (type == SSL3_RT_HANDSHAKE && size != 0 &&
             *static_cast<const uint8_t*>(data) == SSL3_MT_KEY_UPDATE) {
    self.crumbs_ += kOfKeyUpdate;
  }
}

// With NO_RENEGOTIATION, OpenSSL only refuses each hello and continues: a record holds thousands of
// them, and OpenSSL allocates the length that one announces. So the session ends as if the peer had
// closed it, and the rest is dropped.
void Session::OnState(const SSL* ssl, int where, int) {
  Session& self = *static_cast<Session*>(BIO_get_data(SSL_get_rbio(ssl)));
  if ((where & SSL_CB_HANDSHAKE_START) == 0 || !self.established_) return;
  if (SSL_version(ssl) != TLS1_2_VERSION) return;
  self.renegotiates_ = true;
  SSL_set_shutdown(self.ssl_, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

// ---- The handshake

Session::Step Session::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result != 1) {
    const int error = SSL_get_error(ssl_, result);
    wants_write_ = error == SSL_ERROR_WANT_WRITE;
    if (error == SSL_ERROR_WANT_READ || wants_write_) return Step::kAgain;
    failed_ = true;
    return RefuseForError();
  }
  wants_write_ = false;
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_, &chosen, &size);
  if (protocol_ == Protocol::kGrpc && size == 0) {
    SayEnd();
    return Refuse(Refusal::kProtocol, "the client does not offer HTTP/2 (ALPN 'h2')");
  }
  established_ = true;
  more_to_read_ = true;  // data may have come with the last bytes of the handshake
  record_bytes_ = kCrumbBytes;
  return Step::kDone;
}

Session::Step Session::Refuse(Refusal refusal, absl::string_view reason) {
  refusal_ = refusal;
  reason_ = std::string(reason);
  failed_ = true;
  return Step::kRefused;
}

Session::Step Session::RefuseForError() {
  if (verdict_ == HandshakeLimit::Verdict::kNoTls) {
    return Refuse(Refusal::kPlainText, "plain text: this port speaks TLS");
  }
  if (verdict_ == HandshakeLimit::Verdict::kTooLarge) {
    return Refuse(Refusal::kProtocol, "a message of the handshake is too large");
  }
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  const long verified = SSL_get_verify_result(ssl_);  // NOLINT(google-runtime-int): OpenSSL's
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    ERR_clear_error();
    return Refuse(Refusal::kNoCertificate, "the client sent no certificate (--tls_client_ca)");
  }
  if (verified != X509_V_OK) {
    ERR_clear_error();
    return Refuse(Refusal::kCertificate, absl::StrCat("the client's certificate: ",
                                                      X509_verify_cert_error_string(verified)));
  }
  if (ended_ || reason == 0) {
    ERR_clear_error();
    if (!limit_.begun()) return Step::kGone;
    // Many clients just close the connection if they do not accept the certificate.
    return Refuse(Refusal::kClient,
                  "the client hung up; it may not accept the server's certificate");
  }
  const std::string text = TakeError();
  if (reason > kFirstAlert) return Refuse(Refusal::kClient, absl::StrCat("the client: ", text));
  return Refuse(Refusal::kProtocol, text);
}

bool Session::has_client_certificate() const { return SSL_get0_peer_certificate(ssl_) != nullptr; }

// ---- Bytes

int Session::TakeCrumbs() { return std::exchange(crumbs_, 0); }

ssize_t Session::Stuck(int result) {
  switch (renegotiates_ ? SSL_ERROR_SSL : SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      wants_write_ = false;
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_WANT_WRITE:
      wants_write_ = true;
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    default:
      failed_ = true;
      ERR_clear_error();
      errno = EPROTO;
      return ended_ ? 0 : -1;
  }
}

ssize_t Session::ReadOnce(void* to, size_t size) {
  for (;;) {
    ERR_clear_error();
    dry_ = false;
    size_t count = 0;
    const int result = SSL_read_ex(ssl_, to, size, &count);
    if (result == 1) {
      record_bytes_ += count;
      more_to_read_ = true;
      read_wants_write_ = false;
      return static_cast<ssize_t>(count);
    }
    const ssize_t stuck = Stuck(result);
    read_wants_write_ = stuck < 0 && errno == EAGAIN && wants_write_;
    // A record without data was read, and the next one may be available.
    more_to_read_ = stuck < 0 && errno == EAGAIN && !wants_write_ && !dry_;
    if (!more_to_read_ || crumbs_ > kMostCrumbs) return stuck;
  }
}

ssize_t Session::Read(absl::Span<const iovec> pieces) {
  size_t total = 0;
  for (const iovec& piece : pieces) {
    auto* to = static_cast<uint8_t*>(piece.iov_base);
    for (size_t left = piece.iov_len; left != 0;) {
      const ssize_t count = ReadOnce(to, left);
      // The next read reports an end or an error again.
      if (count <= 0) return total != 0 ? static_cast<ssize_t>(total) : count;
      to += count;
      left -= static_cast<size_t>(count);
      total += static_cast<size_t>(count);
      if (crumbs_ > kMostCrumbs) return static_cast<ssize_t>(total);
    }
  }
  return static_cast<ssize_t>(total);
}

ssize_t Session::Write(absl::Span<const iovec> pieces) {
  size_t total = 0;
  size_t piece = 0;
  size_t offset = 0;  // in the current piece
  const auto pass = [&](size_t bytes) {
    for (offset += bytes; piece < pieces.size() && offset >= pieces[piece].iov_len; ++piece) {
      offset -= pieces[piece].iov_len;
    }
  };
  pass(0);
  while (piece < pieces.size()) {
    const auto* from = static_cast<const uint8_t*>(pieces[piece].iov_base) + offset;
    size_t size = std::min(pieces[piece].iov_len - offset, kRecordBytes);
    if (size < kRecordBytes && piece + 1 < pieces.size()) {
      auto& gathered = Gathered();
      std::memcpy(gathered.data(), from, size);
      for (size_t next = piece + 1; next < pieces.size() && size < kRecordBytes; ++next) {
        const size_t taken = std::min(pieces[next].iov_len, kRecordBytes - size);
        std::memcpy(gathered.data() + size, pieces[next].iov_base, taken);
        size += taken;
      }
      from = gathered.data();
    }
    ERR_clear_error();
    size_t written = 0;
    const int result = SSL_write_ex(ssl_, from, size, &written);
    if (result != 1) {
      const ssize_t stuck = Stuck(result);
      write_wants_read_ = stuck < 0 && errno == EAGAIN && !wants_write_;
      if (total != 0) return static_cast<ssize_t>(total);
      if (stuck == 0) errno = EPIPE;
      return -1;
    }
    write_wants_read_ = false;
    total += written;
    pass(written);
  }
  return static_cast<ssize_t>(total);
}

void Session::SayEnd() {
  if (failed_ || SSL_in_init(ssl_) != 0) return;
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace quantd::access
