// Takes connections off a listening socket. It must never go deaf: not when the process is out of
// descriptors (one is kept for that), not when there are too many connections.
//
// When there are as many as are allowed, a newcomer is let in only in the place of another one: of
// the peer that has the most, if that has more than the newcomer's, the connection that has been
// quiet for longest. So one peer can't lock out the others.
#ifndef QUANTD_SERVER_TRANSPORT_ACCEPTOR_H_
#define QUANTD_SERVER_TRANSPORT_ACCEPTOR_H_

#include "server/loop/loop.h"
#include "server/net/listen.h"
#include "server/transport/transport.h"

namespace quantd::transport {

// Only on the thread that leads loop(), but for construction and destruction.
class Acceptor final : private loop::Watcher, private loop::Timer {
 public:
  Acceptor(Transport& transport, loop::Loop& loop, net::Listener listener);
  ~Acceptor();

  loop::Loop& loop() const { return loop_; }
  void Start();
  void Stop();

 private:
  void OnReady(uint32_t events) override;
  void Fire() override;
  bool AcceptOne();
  bool RefuseOne();
  void Rest();

  Transport& transport_;
  loop::Loop& loop_;
  net::Listener listener_;
  int spare_;  // given up for a moment when there is no other
  bool watched_ = false;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_ACCEPTOR_H_
