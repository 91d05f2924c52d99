// Any bytes from a peer over a connection, to the transport and to nghttp2's own server session.
// The transport gets them in pieces through a socket, reads large messages in place, follows frames
// itself and passes messages to calls; nghttp2 gets them in one piece (http2_reference.h).
//
// Checked: both have the same calls; these got the same messages and end in the same way; the
// connection ends with the same error, and the same streams are reset.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "frames.h"
#include "fuzzing.h"
#include "http2_input.h"
#include "http2_peer.h"
#include "http2_reference.h"
#include "server/loop/event.h"
#include "server/transport/server_call.h"
#include "server/wire/status_details.h"

namespace quantd::fuzz {

uint64_t useful_inputs = 0;

namespace {

using State = ReferenceStream::State;

// Limits that no input reaches, so that nothing is refused for them.
constexpr size_t kMostInput = 64 << 10;
constexpr uint32_t kStreams = 1 << 20;
constexpr uint64_t kWindow = 256 << 10;
constexpr size_t kMostMessage = 128 << 10;

// What a call of the transport has seen.
struct Seen {
  std::vector<std::string> messages;
  absl::StatusCode end = absl::StatusCode::kUnknown;
};

class CollectService final : public OneMethod {
 public:
  void Begin(transport::ServerCall& stream) override { Collect(calls, stream, *this); }

  std::map<int32_t, Seen> seen;

 private:
  static rpc::Call Collect(rpc::Calls& /*calls*/, transport::ServerCall& stream,
                           CollectService& service) {
    Seen& seen = service.seen[stream.id()];
    loop::Event read, finished;
    for (;;) {
      transport::Message message;
      read.Reset();
      stream.Read(message, read);
      const bool has_message = co_await read;
      if (!has_message) break;
      ++service.progress;
      seen.messages.emplace_back(reinterpret_cast<const char*>(message.bytes().data()),
                                 message.size);
      message = transport::Message();
      stream.Taken();
    }
    const absl::Status end = stream.interrupted() ? stream.interruption() : absl::OkStatus();
    seen.end = end.code();
    stream.Finish(wire::ToCallStatus(end), finished);
    co_await finished;
    ++service.progress;
    stream.End();
  }
};

Surroundings Large() {
  Surroundings large;
  large.limits.max_message_bytes = kMostMessage;
  large.limits.max_streams = kStreams;
  large.limits.max_calls = kStreams;
  large.receive_budget = uint64_t{1} << 40;
  large.window = kWindow;
  large.quiet_iterations = 6;
  return large;
}

void RequireFor(int32_t stream, bool condition, absl::string_view what) {
  if (!condition) Require(false, absl::StrCat("stream ", stream, ": ", what));
}

bool IsBegin(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin());
}

// The server's error for the connection, and the streams that it reset.
struct Said {
  uint32_t error = 0;
  std::set<std::pair<int32_t, uint32_t>> resets;
};

uint32_t WordAt(const std::string& bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = at; i < at + 4 && i < bytes.size(); ++i) {
    word = word << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return word;
}

Said Understand(absl::string_view received) {
  Said said;
  for (const Frame& frame : ParseFrames(received)) {
    if (frame.type == transport::kGoAwayFrame) said.error = WordAt(frame.payload, 4);
    const uint32_t reason = WordAt(frame.payload, 0);
    if (frame.type == transport::kRstFrame && reason != 0) {
      said.resets.insert({static_cast<int32_t>(frame.stream), reason});
    }
  }
  return said;
}

// `cut_short`: the connection has ended with an error, and all calls with it.
void CompareCall(int32_t id, const ReferenceStream& expected, const Seen* seen, bool cut_short) {
  if (seen == nullptr) {
    // A call that was cancelled before it could begin is never seen.
    RequireFor(id, !expected.is_call || cut_short || expected.state == State::kReset,
               "its call has begun");
    return;
  }
  const bool ends_early = expected.has_length && expected.state == State::kReset &&
                          IsBegin(expected.messages, seen->messages);
  RequireFor(id, ends_early || IsBegin(seen->messages, expected.messages),
             "no other messages reached it");
  if (cut_short || expected.state == State::kReset) return;
  RequireFor(id, seen->messages.size() == expected.messages.size(), "all messages reached it");
  // A compressed message may be too large where the reference finds it broken.
  const bool too_large = seen->end == absl::StatusCode::kResourceExhausted &&
                         expected.end == absl::StatusCode::kInvalidArgument;
  const bool untimely = expected.has_length && expected.end != absl::StatusCode::kOk;
  RequireFor(id, seen->end == expected.end || too_large || untimely,
             absl::StrCat("it ends alike, with ", seen->end, " and ", expected.end));
}

void Compare(const Reference& expected, const CollectService& service, const Said& said) {
  const bool cut_short = expected.fatal || expected.error != 0;
  if (said.error != expected.error) {
    Require(false, absl::StrCat("the connection ends alike, with ", said.error, " and ",
                                expected.error, " after ", expected.compared, " bytes"));
  }
  for (const auto& [id, seen] : service.seen) {
    const auto stream = expected.streams.find(id);
    RequireFor(id, stream != expected.streams.end() && stream->second.is_call, "it is a call");
  }
  for (const auto& [id, stream] : expected.streams) {
    const auto seen = service.seen.find(id);
    CompareCall(id, stream, seen == service.seen.end() ? nullptr : &seen->second, cut_short);
    if (stream.end == absl::StatusCode::kOk && !stream.messages.empty()) ++useful_inputs;
  }
  if (cut_short) return;
  // Which of two resets comes first depends on timing, and DATA that no call reads may be wrong.
  const auto is_open = [&expected](int32_t id) {
    const auto stream = expected.streams.find(id);
    if (stream == expected.streams.end()) return false;
    const State state = stream->second.state;
    return stream->second.peer_reset || stream->second.has_length || state == State::kAnswered ||
           state == State::kOver;
  };
  for (const auto& [id, reason] : expected.resets) {
    RequireFor(id, is_open(id) || said.resets.count({id, reason}) == 1, "it is reset");
  }
  for (const auto& [id, reason] : said.resets) {
    RequireFor(id, is_open(id) || expected.resets.count({id, reason}) == 1, "it is not reset");
  }
}

}  // namespace

std::string RandomInput(Random& random) {
  Conversation conversation = RandomConversation(random);
  const auto change = [&random](std::string& bytes) {
    if (!bytes.empty()) bytes[Below(random, bytes.size())] = static_cast<char>(random());
  };
  if (OneIn(random, 2)) Change(conversation, random, change);
  return Cut(ToBytes(conversation), random);
}

}  // namespace quantd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd::fuzz;
  static auto* const service = new CollectService;
  static const Surroundings large = Large();
  if (size > kMostInput) return 0;
  absl::string_view input(reinterpret_cast<const char*>(data), size);
  const Reference expected = AskNghttp2(Join(input), kStreams, kWindow, kMostMessage);
  // The same pieces, as far as both must agree.
  std::string same;
  for (size_t left = expected.compared; left != 0;) {
    const char step = input[0];
    const absl::string_view piece = NextPiece(input).substr(0, left);
    absl::StrAppend(&same, std::string(1, step), piece);
    left -= piece.size();
  }
  service->seen.clear();
  std::string received;
  if (!Converse(*service, large, same, &received)) return 0;
  Compare(expected, *service, Understand(received));
  return 0;
}
