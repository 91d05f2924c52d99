// Any bytes as what a peer sends over a connection: through a socket into the transport, with a
// service that sends every message back. Each input is a sequence of pieces, so that frames are cut
// anywhere: a byte that says how long a piece is, in steps of 7, and the piece.
//
// Held to: no crash and no sanitizer's complaint; the connection ends soon after its peer has ended
// it; nothing is left then of calls, memory set aside or buffers.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "fuzzing.h"
#include "server/admission/receiving.h"
#include "server/loop/loop.h"
#include "server/memory/buffer.h"
#include "server/rpc/call.h"
#include "server/transport/connection.h"
#include "server/transport/connection_set.h"
#include "server/transport/shared.h"
#include "server/transport/stream.h"
#include "server/wire/status_details.h"

namespace quantd::fuzz {

uint64_t useful_inputs = 0;

namespace {

constexpr absl::string_view kPath = "/f/Echo";
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Turns of the loop without anything from the server before the peer ends the connection.
constexpr int kQuietTurns = 3;

rpc::Call Echo(rpc::Calls& /*calls*/, transport::Stream& stream, memory::Pool& pool) {
  loop::Event read, written, finished;
  for (;;) {
    memory::Piece answer;
    {
      transport::Message message;
      read.Reset();
      stream.Read(message, read);
      const bool has_message = co_await read;
      if (!has_message) break;
      answer.buffer = pool.Allocate(transport::kPrefixBytes + message.size);
      answer.begin = answer.buffer.data() + transport::kPrefixBytes;
      answer.size = message.size;
      if (message.size != 0) std::memcpy(answer.begin, message.buffer.data(), message.size);
    }
    stream.Taken();
    written.Reset();
    stream.Write(std::move(answer), written);
    const bool sent = co_await written;
    if (!sent) break;
    ++useful_inputs;
  }
  const absl::Status end = stream.interrupted() ? stream.interruption() : absl::OkStatus();
  stream.Finish(wire::ToCallStatus(end), finished);
  co_await finished;
  stream.End();
}

class EchoService final : public transport::Service {
 public:
  int Find(absl::string_view path) const override { return path == kPath ? 0 : -1; }
  void Begin(transport::Stream& stream) override { Echo(calls, stream, pool); }
  errors::CallStatus Refuse(const transport::Stream&, int,
                            const absl::Status& status) const override {
    return wire::ToCallStatus(status);
  }
  bool AnyoneWaits() const override { return true; }

  rpc::Calls calls;
  memory::Pool pool;
};

transport::Limits SmallLimits() {
  transport::Limits limits;
  limits.max_message_bytes = 1 << 20;
  limits.max_streams = 20;
  limits.max_calls = 30;
  return limits;
}

// The other end of the connection, and what turns the loop until all is over.
class Peer final : private loop::Posted {
 public:
  Peer(EchoService& service, transport::Shared& shared, transport::ConnectionSet& set,
       absl::string_view input)
      : service_(service), shared_(shared), set_(set), input_(input) {
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
      Require(shared_.peers.Add(1, 0).may_come, "there is room for a connection");
      set_.Expect();
      transport::Connection::Open(set_, std::exchange(server_fd_, -1), {1, "fuzzer"});
    }
    Send();
    Receive();
    if (fd_ < 0 && set_.size() == 0 && service_.calls.live() == 0) return set_.loop().Stop();
    Require(std::chrono::steady_clock::now() - began_ < std::chrono::seconds(20),
            "a connection ends soon after its peer has ended it");
    set_.loop().AtTurnEnd(*this);
  }

  void Send() {
    if (fd_ < 0 || input_.empty()) return;
    if (left_ == 0) {
      left_ = 1 + 7 * static_cast<size_t>(static_cast<uint8_t>(input_[0]));
      input_.remove_prefix(1);
    }
    const absl::string_view piece = input_.substr(0, left_);
    const ssize_t sent = send(fd_, piece.data(), piece.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) input_ = {};
    if (sent <= 0) return;
    input_.remove_prefix(static_cast<size_t>(sent));
    left_ -= static_cast<size_t>(sent);
    quiet_ = 0;
  }

  void Receive() {
    if (fd_ < 0) return;
    std::array<char, 65536> bytes;
    const ssize_t count = recv(fd_, bytes.data(), bytes.size(), 0);
    if (count > 0) {
      quiet_ = 0;
    } else if (count == 0 || errno != EAGAIN || (input_.empty() && ++quiet_ > kQuietTurns)) {
      close(std::exchange(fd_, -1));
    }
  }

  EchoService& service_;
  transport::Shared& shared_;
  transport::ConnectionSet& set_;
  absl::string_view input_;
  size_t left_ = 0;  // of the piece
  int fd_ = -1;
  int server_fd_ = -1;
  int quiet_ = 0;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

std::string Number(uint64_t value, int bytes) {
  std::string text;
  while (bytes-- > 0) text.push_back(static_cast<char>(value >> (8 * bytes)));
  return text;
}

std::string Frame(int type, int flags, uint64_t stream, absl::string_view payload) {
  return absl::StrCat(Number(payload.size(), 3), Number(static_cast<uint64_t>(type), 1),
                      Number(static_cast<uint64_t>(flags), 1), Number(stream, 4), payload);
}

std::string Header(absl::string_view name, absl::string_view value) {
  return absl::StrCat(Number(0, 1), Number(name.size(), 1), name, Number(value.size(), 1), value);
}

std::string RequestHeaders(Random& random) {
  std::string block = Header(":method", OneIn(random, 20) ? "GET" : "POST");
  block += Header(":scheme", "http") + Header(":authority", "x");
  block += Header(":path", OneIn(random, 20) ? "/f/None" : std::string(kPath));
  block += Header("te", "trailers");
  block += Header("content-type", OneIn(random, 20) ? "text/html" : "application/grpc+proto");
  if (OneIn(random, 8)) block += Header("grpc-timeout", OneIn(random, 2) ? "10S" : "1n");
  if (OneIn(random, 8)) block += Header("grpc-encoding", "gzip");
  return block;
}

std::string RandomFrame(Random& random, uint64_t& next_stream) {
  const uint64_t stream =
      next_stream == 1 || OneIn(random, 10) ? Below(random, 9) : next_stream - 2;
  const std::string any(Below(random, 40), static_cast<char>(random()));
  switch (Below(random, 16)) {
    case 0:
      return Frame(static_cast<int>(Below(random, 12)), static_cast<int>(Below(random, 256)),
                   stream, any);
    case 1:
      return Frame(6, OneIn(random, 2) ? 1 : 0, 0, "12345678");  // PING
    case 2:
      return Frame(3, 0, stream, Number(8, 4));  // RST_STREAM
    case 3:
      return Frame(8, 0, OneIn(random, 2) ? 0 : stream, Number(random() >> Below(random, 64), 4));
    case 4: {  // SETTINGS
      const uint64_t value = random() >> Below(random, 64);
      return Frame(4, 0, 0, Number(1 + Below(random, 6), 2) + Number(value, 4));
    }
    case 5: {  // a header block in two frames
      const std::string block = RequestHeaders(random);
      const size_t cut = Below(random, block.size());
      const uint64_t id = next_stream;
      next_stream += 2;
      return Frame(1, 0, id, block.substr(0, cut)) + Frame(9, 4, id, block.substr(cut));
    }
    case 6:  // the length of a message, and a part of it
      return Frame(0, 0, stream,
                   Number(Below(random, 8), 1) + Number(random() >> Below(random, 64), 4) + any);
    case 7:
      return Frame(0, static_cast<int>(Below(random, 2)), stream, any);
    default: {  // a call, mostly a whole one
      const uint64_t id = next_stream;
      next_stream += 2;
      const std::string message(Below(random, OneIn(random, 8) ? 20'000 : 50), 'm');
      const std::string data = Number(0, 1) + Number(message.size(), 4) + message;
      std::string frames = Frame(1, 4, id, RequestHeaders(random));
      const size_t cut = OneIn(random, 2) ? data.size() : Below(random, data.size());
      frames += Frame(0, cut == data.size() ? 1 : 0, id, data.substr(0, cut));
      if (cut < data.size()) frames += Frame(0, OneIn(random, 2) ? 1 : 0, id, data.substr(cut));
      return frames;
    }
  }
}

}  // namespace

std::string RandomInput(Random& random) {
  std::string bytes = absl::StrCat(kPreface, Frame(4, 0, 0, ""));
  uint64_t next_stream = 1;
  for (uint64_t frames = Below(random, 12); frames > 0; --frames) {
    bytes += RandomFrame(random, next_stream);
  }
  if (OneIn(random, 6)) bytes[Below(random, bytes.size())] = static_cast<char>(random());
  std::string input;
  for (size_t at = 0; at < bytes.size();) {
    const auto step = static_cast<uint8_t>(OneIn(random, 2) ? 255 : Below(random, 256));
    input.push_back(static_cast<char>(step));
    input += bytes.substr(at, 1 + 7 * size_t{step});
    at += 1 + 7 * size_t{step};
  }
  return input;
}

}  // namespace quantd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd;
  using fuzz::Require;
  static auto* const service = new fuzz::EchoService;
  admission::Receiving receiving(4 << 20, 64 << 10, 10);
  transport::Shared shared{*service, service->pool, receiving, fuzz::SmallLimits()};
  const std::unique_ptr<loop::Loop> loop = *loop::Loop::Create();
  {
    transport::ConnectionSet set(shared, *loop, 0);
    fuzz::Peer peer(*service, shared, set, {reinterpret_cast<const char*>(data), size});
    loop->Lead();
  }
  Require(shared.counters.calls == 0 && shared.counters.connections == 0, "nothing is counted on");
  Require(shared.peers.connections() == 0, "the peer's place is free");
  Require(receiving.held_bytes() == 0 && receiving.waiting() == 0, "nothing is set aside");
  Require(service->pool.used_bytes() == 0, "no buffer is kept");
  return 0;
}
