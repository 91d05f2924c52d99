// Every connection of the HTTP side, in one thread over epoll. A connection is
//
//   shaking  hands, where there is TLS;
//   reading  until its request is known, at most request_time from its accept;
//   writing  its answer;
//   ending   when all is written and the peer knows that. What it still sends is thrown away until
//            it ends, too: closed at once, the connection would be reset by what came after the
//            request, and the answer lost on its way.
//
// Writing and ending take at most answer_time. Whoever is late, or the oldest when there are too
// many, is reset, so that the kernel keeps nothing for it either.
#ifndef QUANTD_SERVER_HTTP_EPOLL_LOOP_H_
#define QUANTD_SERVER_HTTP_EPOLL_LOOP_H_

#include <sys/epoll.h>

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
#include "server/descriptor/descriptor.h"
#include "server/http/http.h"
#include "server/http/request_reader.h"

namespace quantd::http {

// Open, then Run in a thread of its own.
class EpollLoop {
 public:
  // What to send for a request whose status is known: headers and body. `has_certificate`: a right
  // one, of the client.
  using Answerer = std::function<std::string(const RequestReader&, bool has_certificate)>;

  // `listener` listens and does not block.
  EpollLoop(Descriptor listener, const HttpLimits& limits, const HttpAccess& access,
            Answerer answer);
  ~EpollLoop();

  // UNAVAILABLE when the process has no descriptors left. Once, before the others.
  absl::Status Open();
  // Serves until Stop.
  void Run();
  // Ends Run. Safe from any thread, also before Run.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kShaking, kReading, kWriting, kEnding };
  // What becomes of a connection: it stays, or is closed, what is under way delivered or not.
  enum class Result { kOpen, kClose, kReset };

  struct Connection {
    Connection(Descriptor s, size_t request_bytes) : socket(std::move(s)), request(request_bytes) {}
    Descriptor socket;
    std::unique_ptr<access::Session> tls;
    RequestReader request;
    Clock::time_point deadline;
    State state = State::kReading;
    std::string answer;
    size_t written = 0;
    size_t thrown_away = 0;
    std::list<Connection>::iterator place;
  };

  int Wait(epoll_event* events, int size) const;
  void Accept();
  void Add(Descriptor socket);
  bool MakeRoom();
  void KeepSpares();
  void Serve(Connection& connection);
  Result Shake(Connection& connection);
  static void RefuseHandshake(Connection& connection);
  Result Read(Connection& connection);
  // As recv and send of its socket.
  ssize_t Receive(const Connection& connection);
  static ssize_t Send(const Connection& connection, absl::string_view bytes);
  Result StartEnding(Connection& connection);
  Result Write(Connection& connection);
  Result End(Connection& connection);
  Result Late(Connection& connection) const;
  void Close(Connection& connection, Result how);
  void LookAtClock();
  void DropAnswers();
  void SetDeadline(Connection& connection, std::chrono::milliseconds from_now);
  bool Watch(int operation, int descriptor, uint32_t events, void* tag) const;

  const HttpLimits limits_;
  const HttpAccess access_;
  const Answerer answer_;
  Descriptor listener_;
  Descriptor epoll_;
  Descriptor stop_;                                             // an eventfd
  std::vector<Descriptor> spares_;                              // see kSpares
  std::list<Connection> connections_;                           // the oldest first
  size_t answer_bytes_ = 0;                                     // of all that are writing
  Clock::time_point next_deadline_ = Clock::time_point::max();  // none is earlier
  Clock::time_point deaf_until_ = Clock::time_point::max();     // max: not deaf
  std::string buffer_;                                          // what is just being read
};

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_EPOLL_LOOP_H_
