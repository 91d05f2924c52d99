#include "http2_peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "fuzzing.h"
#include "http2_input.h"
#include "server/admission/receiving.h"
#include "server/loop/loop.h"
#include "server/transport/connection.h"
#include "server/transport/connection_set.h"
#include "server/wire/status_details.h"

namespace quantd::fuzz {
namespace {

// The other end of the connection, and what turns the loop until all is over.
class Peer final : private loop::Posted {
 public:
  Peer(OneMethod& service, transport::TransportContext& context, transport::ConnectionSet& set,
       int quiet_iterations, absl::string_view input, std::string* received)
      : service_(service),
        context_(context),
        set_(set),
        quiet_iterations_(quiet_iterations),
        input_(input),
        received_(received) {
    std::array<int, 2> ends{};
    constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    Require(socketpair(AF_UNIX, kType, 0, ends.data()) == 0, "there is a pair of sockets");
    fd_ = ends[0];
    server_fd_ = ends[1];
    set_.loop().Post(*this);
  }
  ~Peer() {
    if (fd_ >= 0) close(fd_);
  }

 private:
  // Once a turn. It never lets the loop wait: nothing depends on time, but for its pauses.
  void Run() override {
    if (server_fd_ >= 0) {
      Require(context_.peers.Add(1, 0).may_come, "there is room for a connection");
      set_.Expect();
      transport::Connection::Open(set_, std::exchange(server_fd_, -1), {1, "fuzzer"});
    }
    if (std::exchange(seen_, service_.progress) != service_.progress) quiet_ = 0;
    Send();
    Receive();
    if (fd_ < 0 && set_.size() == 0 && service_.calls.live() == 0) return set_.loop().Stop();
    Require(std::chrono::steady_clock::now() - began_ < std::chrono::seconds(20),
            "a connection ends soon after its peer has ended it");
    set_.loop().AtIterationEnd(*this);
  }

  void Send() {
    bool more = fd_ >= 0;
    while (more) {
      if (piece_.empty()) {
        piece_ = NextPiece(input_);
        joined_ = piece_.size() == kLongestPiece;
      }
      if (piece_.empty()) return;
      const ssize_t sent = send(fd_, piece_.data(), piece_.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) piece_ = input_ = {};
      if (sent <= 0) return;
      piece_.remove_prefix(static_cast<size_t>(sent));
      quiet_ = 0;
      more = piece_.empty() && joined_;
    }
  }

  void Receive() {
    if (fd_ < 0) return;
    std::array<char, 65536> bytes;
    const ssize_t count = recv(fd_, bytes.data(), bytes.size(), 0);
    if (count > 0) {
      quiet_ = 0;
      if (received_ != nullptr) received_->append(bytes.data(), static_cast<size_t>(count));
      return;
    }
    const bool all_sent = piece_.empty() && input_.empty();
    if (count == 0 || errno != EAGAIN || (all_sent && ++quiet_ > quiet_iterations_)) {
      close(std::exchange(fd_, -1));
    }
  }

  OneMethod& service_;
  transport::TransportContext& context_;
  transport::ConnectionSet& set_;
  const int quiet_iterations_;
  absl::string_view input_;
  absl::string_view piece_;
  bool joined_ = false;  // with what comes behind the piece
  std::string* const received_;
  uint64_t seen_ = 0;
  int fd_ = -1;
  int server_fd_ = -1;
  int quiet_ = 0;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

int OneMethod::Find(absl::string_view path) const { return path == kPath ? 0 : -1; }

errors::CallStatus OneMethod::Refuse(const transport::ServerCall& /*stream*/, int /*method*/,
                                     const absl::Status& status) const {
  return wire::ToCallStatus(status);
}

void Converse(OneMethod& service, const Surroundings& surroundings, absl::string_view input,
              std::string* received) {
  admission::Receiving receiving(surroundings.receive_budget, surroundings.window, 10);
  transport::TransportContext context{service, service.pool, receiving, surroundings.limits};
  const std::unique_ptr<loop::Loop> loop = *loop::Loop::Create();
  {
    transport::ConnectionSet set(context, *loop, 0);
    Peer peer(service, context, set, surroundings.quiet_iterations, input, received);
    loop->Lead();
  }
  Require(context.counters.calls == 0 && context.counters.connections == 0,
          "nothing is counted on");
  Require(context.peers.connections() == 0, "the peer's place is free");
  Require(receiving.held_bytes() == 0 && receiving.waiting() == 0, "nothing is set aside");
  Require(service.pool.used_bytes() == 0, "no buffer is kept");
}

}  // namespace quantd::fuzz
