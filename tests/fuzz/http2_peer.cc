#include "http2_peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
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

// One loop for all inputs: making it costs more than a short input. What an input leaves in it
// disturbs the next one, and so is noticed.
loop::Loop& TheLoop() {
  static loop::Loop* const the_loop = loop::Loop::Create()->release();
  return *the_loop;
}

// The other end of the connection. It keeps the loop running until everything has ended.
class Peer final : private loop::Posted {
 public:
  Peer(OneMethod& service, transport::TransportContext& context, transport::ConnectionSet& set,
       int quiet_iterations, uint8_t around, absl::string_view input)
      : service_(service),
        context_(context),
        set_(set),
        quiet_iterations_(quiet_iterations),
        around_(around),
        deaf_((around & kDeaf) != 0),
        input_(input) {
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
  // Iterations that the rest needs to end: closed connections and calls that have ended.
  static constexpr int kIterationsBehind = 2;
  // The time of an iteration with kTimePasses.
  static constexpr std::chrono::milliseconds kTurn{250};

  // Runs once per iteration. It never lets the loop wait: nothing depends on time except pauses.
  void Run() override {
    if (leaves_) return loop::Loop::Leave();
    if (server_fd_ >= 0) {
      const int fd = std::exchange(server_fd_, -1);
      Require(transport::Connection::Open(set_, fd, {1, "fuzzer"}),
              "there is room for a connection");
      const int little = 1;  // after Open, which sets it
      if (deaf_) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
    }
    if (std::exchange(seen_, service_.progress) != service_.progress) quiet_ = 0;
    Send();
    Receive();
    if ((around_ & kTimePasses) != 0) set_.loop().timers().Fire(loop::Clock::now() + kTurn);
    if (fd_ < 0 && set_.size() == 0 && service_.calls.live() == 0 && ++over_ > kIterationsBehind) {
      leaves_ = true;
      return set_.loop().Post(*this);
    }
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
    if (fd_ < 0 || (deaf_ && ++quiet_ <= quiet_iterations_)) return;
    if (std::exchange(deaf_, false)) quiet_ = 0;
    // Not on the stack, where a sanitizer would poison it every time.
    static std::array<char, 65536> bytes;
    const ssize_t count = recv(fd_, bytes.data(), bytes.size(), 0);
    if (count > 0) {
      quiet_ = 0;
      return;
    }
    const bool all_sent = piece_.empty() && input_.empty();
    if (all_sent && quiet_ == 1 && (around_ & kServerEnds) != 0) EndFromServer();
    if (count == 0 || errno != EAGAIN || (all_sent && ++quiet_ > quiet_iterations_)) {
      close(std::exchange(fd_, -1));
    }
  }

  void EndFromServer() {
    set_.EndCalls(absl::UnavailableError("the server ends"));
    set_.GoAway();
    if ((around_ & kDraining) != 0) set_.Close();
  }

  OneMethod& service_;
  transport::TransportContext& context_;
  transport::ConnectionSet& set_;
  const int quiet_iterations_;
  const uint8_t around_;
  bool deaf_;
  absl::string_view input_;
  absl::string_view piece_;
  bool joined_ = false;  // with the piece that follows
  uint64_t seen_ = 0;
  int fd_ = -1;
  int server_fd_ = -1;
  int quiet_ = 0;
  int over_ = 0;
  bool leaves_ = false;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

transport::Limits LimitsOf(uint8_t around, transport::Limits limits) {
  if ((around & kLittleMemory) != 0) limits.max_message_bytes = 8 << 10;
  if ((around & kFewCalls) != 0) limits.max_calls = limits.max_watches = 4;
  if ((around & kDeaf) != 0) {
    limits.max_streams = 200;
    limits.max_calls = 300;
  }
  if ((around & kTimePasses) != 0) {
    limits.stall = limits.queue_timeout = std::chrono::milliseconds(0);
    limits.keepalive = std::chrono::seconds(0);
  }
  return limits;
}

}  // namespace

int OneMethod::Find(absl::string_view path) const { return path == kPath ? 0 : -1; }

wire::CallStatus OneMethod::Refuse(const transport::ServerCall& /*stream*/, int /*method*/,
                                   const absl::Status& status) const {
  return wire::ToCallStatus(status);
}

void Converse(OneMethod& service, const Surroundings& surroundings, absl::string_view input) {
  const uint8_t around = AroundOf(input);
  const bool is_little = (around & kLittleMemory) != 0;
  admission::Receiving receiving(is_little ? 12 << 10 : surroundings.receive_budget,
                                 is_little ? 1 << 10 : surroundings.window, 10);
  transport::TransportContext context{service, service.pool, receiving,
                                      LimitsOf(around, surroundings.limits)};
  context.draining = (around & kDraining) != 0;
  loop::Loop& loop = TheLoop();
  {
    transport::ConnectionSet set(context, loop);
    Peer peer(service, context, set, surroundings.quiet_iterations, around, input);
    loop.Lead();
  }
  Require(loop.timers().empty(), "no timer is set");
  Require(context.calls.taken() == 0 && context.watches.taken() == 0, "no call has a place");
  Require(context.connections.taken() == 0, "the peer's place is free");
  Require(receiving.held_bytes() == 0 && receiving.waiting() == 0, "nothing is set aside");
  Require(service.pool.used_bytes() == 0, "no buffer is kept");
}

}  // namespace quantd::fuzz
