// Every connection of the HTTP side, on an event loop of their own, which one thread leads. A
// connection is
//
//   shaking  hands, where there is TLS;
//   reading  until its request is known, at most request_time from its accept;
//   writing  its response;
//   ending   when all is written and the peer knows that. What it still sends is thrown away until
//            it ends, too: closed at once, the connection would be reset by what came after the
//            request, and the response lost on its way.
//
// Writing and ending take at most response_time. Whoever is late, or the oldest when there are too
// many, is reset, so that the kernel keeps nothing for it either.
#ifndef QUANTD_SERVER_HTTP_CONNECTIONS_H_
#define QUANTD_SERVER_HTTP_CONNECTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/access/session.h"
#include "server/fd/unique_fd.h"
#include "server/http/http.h"
#include "server/http/request_reader.h"
#include "server/loop/loop.h"

namespace quantd::http {

// Open, then Serve in a thread of its own.
class Connections final : private loop::Watcher, private loop::Timer, private loop::Posted {
 public:
  // What to send for a request whose status is known: headers and body. `has_certificate`: a right
  // one, of the client.
  using Answerer = std::function<std::string(const RequestReader&, bool has_certificate)>;

  // `listener` listens and does not block.
  Connections(UniqueFd listener, const HttpLimits& limits, const HttpAccess& access,
              Answerer answer);
  ~Connections();

  // UNAVAILABLE when the process has no descriptors left. Once, before the others.
  absl::Status Open();
  // Serves until Stop.
  void Serve() { loop_->Lead(); }
  // Ends Serve. Safe from any thread, also before it.
  void Stop() { loop_->Stop(); }

 private:
  class Connection;
  friend class Connection;

  void OnReady(uint32_t events) override;  // of the listener
  void Fire() override;                    // it is listened to again
  void Run() override;                     // the iteration ends
  // What closes connections of others waits until nobody is left who is to be told of one.
  void AtIterationEnd();
  void Accept();
  bool MakeRoom();
  void KeepSpares();
  void DropResponses();

  const HttpLimits limits_;
  const HttpAccess access_;
  const Answerer answer_;
  UniqueFd listener_;
  std::unique_ptr<loop::Loop> loop_;
  UniqueFd idle_;                      // which the spares are copies of
  std::vector<UniqueFd> spares_;       // see kSpares
  std::list<Connection> connections_;  // the oldest first
  size_t response_bytes_ = 0;          // of all that are writing
  std::string buffer_;                 // what is just being read
  bool iteration_ends_ = false;
  bool accepts_ = false;
};

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_CONNECTIONS_H_
