// One connection: a socket, with TLS or without, and what passes through it: HTTP/2 (http2.h), as
// far as flow_control.h lets it and as long as lifetime.h says.
//
// Reading: the bytes of a large message go from the socket to their place in the message, and the
// frame heads between them are taken out. Everything else is read into a buffer of the thread.
// Writing: frame heads are copied, messages are not.
//
// All functions but Open must be called on the thread that leads the loop.
#ifndef QUANTD_SERVER_TRANSPORT_CONNECTION_H_
#define QUANTD_SERVER_TRANSPORT_CONNECTION_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "server/access/session.h"
#include "server/loop/loop.h"
#include "server/net/peer_name.h"
#include "server/scheduling/places.h"
#include "server/transport/connection_set.h"
#include "server/transport/flow_control.h"
#include "server/transport/http2.h"
#include "server/transport/lifetime.h"
#include "server/transport/server_call.h"

namespace quantd::transport {

class Connection final : private Carrier,
                         private Http2::Owner,
                         private scheduling::Holder,
                         private loop::Watcher,
                         private loop::Timer,
                         private Handshakes::Waiting {
 public:
  // Takes ownership of `fd`, a connected non-blocking socket; `secure`: it uses TLS. The connection
  // gets a place among the connections, if need be that of another one (scheduling/places.h),
  // begins on the loop of `set`, and lives until it is closed. False: there is no place, or no
  // memory; the socket is closed. Safe from any thread.
  static bool Open(ConnectionSet& set, int fd, net::Peer peer, bool secure = false);

  // Asks the client to make no more calls here, and closes the connection when it is answered: see
  // Lifetime.
  void GoAway();
  // Interrupts every call. Sends what can still be sent: `status`, or the reset that means the
  // same.
  void EndCalls(const absl::Status& status);
  // Closes at once. The connection may be destroyed when this returns.
  void Close();
  // Checks timeouts; called a few times a second. `anyone_waits`: whether others wait for what a
  // peer holds by not reading. The connection may be destroyed when this returns.
  void Look(loop::Clock::time_point now, bool anyone_waits);

 private:
  // Runs one of the connection's functions later.
  template <void (Connection::*function)()>
  class Later final : public loop::Posted {
   public:
    explicit Later(Connection& connection) : connection_(connection) {}
    bool posted = false;

   private:
    void Run() override {
      posted = false;
      connection_.Handle([this] { (connection_.*function)(); });
    }
    Connection& connection_;
  };

  Connection(ConnectionSet& set, int fd, net::Peer peer, bool secure);
  ~Connection() = default;
  // Runs one of its functions, unless it is closed. If the system is out of memory, this ends one
  // connection, not the process. The connection may be destroyed when this returns.
  void Handle(absl::FunctionRef<void()> function);
  void Start();

  // Of calls: see Carrier.
  void OnMessage() override { flow_.credit().EarnMessage(); }
  void Answered(size_t bytes) override;
  bool CloseIfBlocked() override;
  void Forget(ServerCall& call) override;

  // Of HTTP/2: see Http2::Owner.
  void OnRequest(int32_t id, Head&& head) override;
  bool Keeps(absl::string_view name) const override { return context_.handler.Keeps(name); }
  size_t calls() const override { return calls_.size(); }
  void OnSettings() override { life_.Spoke(); }
  void OnPong() override { Take(life_.OnPong(calls_.size(), loop_.now())); }
  void OnBroken(bool by_headers) override {
    Note(by_headers ? ConnectionEnd::kHeaders : ConnectionEnd::kProtocolError);
  }
  void OnOutput() override { WantFlush(); }

  // Its place is another's.
  void OnDisplaced() override;
  // The pause of a throttled connection is over.
  void Fire() override;
  void Take(const Lifetime::Step& step);
  void End(ConnectionEnd why);
  void Note(ConnectionEnd why);
  void Linger();
  void MaybeDelete();
  void Charge();

  // Reading.
  void OnReady(uint32_t events) override;
  void SetEvents();
  void Read();
  void React(uint32_t events);
  void ReadOn() { React(EPOLLIN); }
  void ReadSoon();
  bool ReadSome();
  ssize_t ReadOnce(size_t& capacity);
  bool Feed(const uint8_t* data, size_t size);
  void FeedWatchfully(const uint8_t* data, size_t size);
  bool FeedKept();
  bool BackedUp() const { return flow_.BackedUp(http2_.unsent(), calls_.size()); }
  // Whether further input is useless.
  bool IsOver() const { return life_.lingers() || !http2_.wants_input(); }

  // Writing.
  void WantFlush();
  void BeginWriting();
  void FlushAtEnd();
  void FlushNow();
  void Flush();
  void FlushSome();
  ssize_t WritePieces(size_t& offered);
  void SayAtOnce(absl::string_view text);

  // TLS. No HTTP/2 is sent or received before the handshake is over.
  bool handshaking() const { return tls_ != nullptr && !tls_->established(); }
  uint32_t TlsEvents() const;
  void OnHandshakeReady();
  void OnStep() override;  // a step of the handshake
  void MakeStep();
  void RefuseHandshake();
  void ThrowAway();

  ConnectionSet& set_;
  TransportContext& context_;
  loop::Loop& loop_;
  const int fd_;
  const bool secure_;
  const std::shared_ptr<const net::Peer> peer_;
  scheduling::Place place_;
  std::unique_ptr<access::Session> tls_;  // null: no TLS
  FlowControl flow_;
  Lifetime life_;
  Http2 http2_;
  absl::flat_hash_set<ServerCall*> calls_;

  Later<&Connection::Start> starter_{*this};
  Later<&Connection::FlushAtEnd> flusher_{*this};
  Later<&Connection::FlushNow> prompt_flusher_{*this};
  Later<&Connection::ReadOn> reader_{*this};  // for what TLS has read and nobody has processed
  uint32_t events_ = 0;                       // what the loop watches for
  bool watched_ = false;
  bool closed_ = false;
  bool handling_ = false;  // one of its own functions is running

  bool filling_ = false;          // frames are being made
  bool blocked_ = false;          // the socket accepts no more bytes now
  size_t iteration_written_ = 0;  // bytes written in this iteration
  size_t answered_ = 0;           // calls answered since the last flush
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_CONNECTION_H_
