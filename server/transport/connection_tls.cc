// TLS of a connection: its handshake, and the events that it waits for. See connection.h.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <new>

#include "absl/strings/string_view.h"
#include "server/transport/connection.h"
#include "server/transport/connection_set.h"
#include "server/transport/notes.h"

namespace quantd::transport {
namespace {

// Also for clients of HTTP/2. A GOAWAY would be in their protocol, but it follows a SETTINGS frame,
// after which gRPC considers the connection established: unsent calls would go to another
// connection at once, 60 a second until their deadline. This text makes the attempt fail, and gRPC
// waits.
constexpr absl::string_view kPlainText =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 48\r\n"
    "Connection: close\r\n\r\nThis port speaks gRPC over TLS, not plain text.\n";

}  // namespace

uint32_t Connection::TlsEvents() const {
  if (handshaking()) {
    if (lingers_) return EPOLLIN;
    if (queued()) return 0;  // its turn comes soon, whatever happens
    return tls_->wants_write() ? EPOLLOUT : EPOLLIN;
  }
  const bool writes =
      (blocked_ && !tls_->write_wants_read()) || (listens() && tls_->read_wants_write());
  // A write that waits for the peer's bytes must read them, even if the connection is not read
  // otherwise.
  const bool reads = listens() || (blocked_ && tls_->write_wants_read());
  return (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U);
}

void Connection::OnHandshakeReady() {
  if (lingers_) return ThrowAway();
  if (queued()) return;
  try {
    set_.handshakes().Push(*this, peer_.id);
    SetEvents();
  } catch (const std::bad_alloc&) {
    Close();
  }
}

void Connection::OnStep() {
  handling_ = true;
  try {
    switch (tls_->Handshake()) {
      case access::Session::Step::kAgain:
        SetEvents();
        break;
      case access::Session::Step::kGone:
        Close();
        break;
      case access::Session::Step::kRefused:
        RefuseHandshake();
        break;
      case access::Session::Step::kDone:
        heard_at_ = loop_.now();
        SetEvents();
        // Its first frames may have come with the last bytes of the handshake.
        if (ReadSome()) {
          WantFlush();
        } else {
          Close();
        }
    }
  } catch (const std::bad_alloc&) {
    Close();
  }
  handling_ = false;
  MaybeDelete();
}

// An alert has told the client; a client without TLS is told in plain text. The connection lingers,
// as after a GOAWAY, so that this arrives.
void Connection::RefuseHandshake() {
  const auto refusal = static_cast<size_t>(tls_->refusal());
  context_.counters.refused_handshakes[refusal].fetch_add(1, std::memory_order_relaxed);
  context_.counters.CountEnd(ConnectionEnd::kTls);
  NoteRefusedHandshake(tls_->reason(), peer_.name);
  if (tls_->plain_text()) SayAtOnce(kPlainText);
  lingers_ = true;
  leave_at_ = loop_.now();
  shutdown(fd_, SHUT_WR);
  SetEvents();
}

// Discards what a refused client still sends.
void Connection::ThrowAway() {
  std::array<char, 16 << 10> bytes;
  const ssize_t count = recv(fd_, bytes.data(), bytes.size(), 0);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) Close();
}

}  // namespace quantd::transport
