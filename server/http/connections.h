// All connections of the HTTP port, on an event loop of their own that one thread leads. The states
// of a connection are
//
//   shaking  the TLS handshake, if TLS is on;
//   reading  until its request is known, at most request_time after its accept;
//   writing  its response;
//   ending   everything is written; reads and discards what the peer still sends until the peer
//            ends, too. If it were closed at once, bytes after the request would reset the
//            connection, and the response could be lost on its way.
//
// Writing and ending take at most response_time. A connection that is late is reset, and so is the
// oldest of the peer with the most when there are too many, so that the kernel keeps nothing for it
// either. Accepting is cheap and comes first. For all else, which may be a handshake or a page,
// peers take turns (scheduling/fair_queue.h).
#ifndef QUANTD_SERVER_HTTP_CONNECTIONS_H_
#define QUANTD_SERVER_HTTP_CONNECTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/access/session.h"
#include "server/http/http.h"
#include "server/http/request_reader.h"
#include "server/loop/loop.h"
#include "server/net/unique_fd.h"
#include "server/scheduling/fair_queue.h"

namespace quantd::http {

// Call Open, then Serve in a thread of its own.
class Connections final : private loop::Watcher, private loop::Timer, private loop::Posted {
 public:
  // Makes the response, headers and body, for a request whose status is known. `has_certificate`:
  // the client has shown a valid certificate.
  using Answerer = std::function<std::string(const RequestReader&, bool has_certificate)>;

  // REQUIRES: `listener` listens and does not block.
  Connections(UniqueFd listener, const HttpLimits& limits, const HttpAccess& access,
              Answerer answer);
  ~Connections();

  // Returns UNAVAILABLE if no descriptors are left. Call this once, before the other functions.
  absl::Status Open();
  // Serves until Stop is called.
  void Serve() { loop_->Lead(); }
  // Ends Serve. Safe from any thread, also before Serve.
  void Stop() { loop_->Stop(); }

 private:
  class Connection;
  friend class Connection;

  void OnReady(uint32_t events) override;  // the listener's events
  void Fire() override;                    // accepts again after a pause
  void Run() override;                     // the end of the iteration
  // Work that can close other connections is done here, when no event of the iteration is left.
  void AtIterationEnd();
  void Accept();
  Connection& OldestOfTheLargest();
  void KeepSpares();
  void DropResponses();

  const HttpLimits limits_;
  const HttpAccess access_;
  const Answerer answer_;
  UniqueFd listener_;
  std::unique_ptr<loop::Loop> loop_;
  UniqueFd idle_;                               // the spares are copies of this
  std::vector<UniqueFd> spares_;                // see kSpares
  std::unordered_map<uint64_t, size_t> peers_;  // how many connections each has
  scheduling::FairQueue queue_;                 // connections for which there is something to do
  std::list<Connection> connections_;           // the oldest first
  size_t response_bytes_ = 0;                   // of all responses that are being written
  std::string buffer_;                          // what is being read
  bool iteration_ends_ = false;
  bool accepts_ = false;
};

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_CONNECTIONS_H_
