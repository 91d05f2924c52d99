// Accepts connections from a listening socket. It must always be able to accept: also when the
// process is out of descriptors (one is kept for that), and when there are too many connections.
//
// When the maximum is reached, a newcomer is let in only in place of another connection
// (scheduling/places.h): of the peer with the most, if that has more than the newcomer's peer would
// have, the one whose calls have stood still for longest. So one peer can't lock out the others.
#ifndef QUANTD_SERVER_TRANSPORT_ACCEPTOR_H_
#define QUANTD_SERVER_TRANSPORT_ACCEPTOR_H_

#include "server/loop/loop.h"
#include "server/net/listen.h"
#include "server/transport/transport.h"

namespace quantd::transport {

// Used only on the thread that leads loop(), except for construction and destruction.
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
  int spare_;  // a descriptor that is closed for a moment if no other is left
  bool watched_ = false;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_ACCEPTOR_H_
