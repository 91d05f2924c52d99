// Any bytes from a peer over a connection: through a socket into the transport, with a service that
// sends every message back. Inputs consist of pieces, so that frames are cut anywhere
// (http2_input.h), and may choose their surroundings: little memory, a peer that does not read,
// time that passes, a server that ends (Around).
//
// Checked: no crash and no sanitizer's complaint; the connection ends soon after its peer has ended
// it; then no calls, reserved memory or buffers are left.
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "fuzzing.h"
#include "http2_input.h"
#include "http2_peer.h"
#include "server/loop/event.h"
#include "server/memory/buffer.h"
#include "server/transport/server_call.h"
#include "server/wire/status_details.h"

namespace quantd::fuzz {

uint64_t useful_inputs = 0;

namespace {

rpc::Call Echo(rpc::Calls& /*calls*/, transport::ServerCall& stream, memory::Pool& pool) {
  loop::Event read, written, finished;
  stream.SetInitialMetadata(stream.head().metadata());
  for (;;) {
    memory::Piece response;
    {
      transport::Message message;
      read.Reset();
      stream.Read(message, read);
      const bool has_message = co_await read;
      if (!has_message) break;
      response.buffer = pool.Allocate(transport::kPrefixBytes + message.size);
      response.begin = response.buffer.data() + transport::kPrefixBytes;
      response.size = message.size;
      if (message.size != 0) std::memcpy(response.begin, message.buffer.data(), message.size);
    }
    stream.Taken();
    written.Reset();
    stream.Write(std::move(response), written);
    const bool sent = co_await written;
    if (!sent) break;
    ++useful_inputs;
  }
  const absl::Status end = stream.interrupted() ? stream.interruption() : absl::OkStatus();
  stream.Finish(wire::ToCallStatus(end), finished);
  co_await finished;
  stream.End();
}

class EchoService final : public OneMethod {
 public:
  int Find(absl::string_view path) const override {
    return path == kWatchPath ? kWatch : OneMethod::Find(path);
  }
  bool Watches(int method) const override { return method == kWatch; }
  uint64_t MostBytes(int method) const override { return method == kWatch ? 40 : UINT64_MAX; }
  bool Keeps(absl::string_view name) const override { return absl::StartsWith(name, "kept"); }
  absl::Status Authorize(int /*method*/, absl::string_view authorization) const override {
    return authorization == "no" ? absl::UnauthenticatedError(authorization) : absl::OkStatus();
  }
  void Begin(transport::ServerCall& stream) override { Echo(calls, stream, pool); }

 private:
  static constexpr int kWatch = 1;
};

Surroundings Small() {
  Surroundings small;
  small.limits.max_message_bytes = 1 << 20;
  small.limits.max_streams = 20;
  small.limits.max_calls = 30;
  return small;
}

}  // namespace

std::string RandomInput(Random& random) {
  Conversation conversation = RandomConversation(random);
  const auto change = [&random](std::string& bytes) {
    if (!bytes.empty()) bytes[Below(random, bytes.size())] = static_cast<char>(random());
  };
  if (OneIn(random, 4)) Change(conversation, random, change);
  std::string bytes = ToBytes(conversation);
  if (OneIn(random, 6)) change(bytes);
  return Cut(bytes, random);
}

}  // namespace quantd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd::fuzz;
  static auto* const service = new EchoService;
  static const Surroundings small = Small();
  Converse(*service, small, {reinterpret_cast<const char*>(data), size});
  return 0;
}
