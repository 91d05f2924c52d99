// Random conversations, and what each call must have seen of them: whole messages in order, all of
// them if the client has ended its stream, and none that was not sent.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "world.h"

namespace quantd::transport {
namespace {

using loop::Below;
using loop::OneIn;
using loop::Random;

enum class End { kOpen, kEnded, kReset, kBroken };

// One call of a script, and what is known of it.
struct Call {
  int32_t id = 0;
  std::string path;
  bool echoes = false;
  std::vector<std::string> messages;
  std::string left;  // to be sent
  End end = End::kOpen;
  End wanted = End::kEnded;
};

size_t RandomSize(Random& random, size_t window) {
  switch (Below(random, 8)) {
    case 0:
      return 0;
    case 1:
      return window - 10 + Below(random, 20);
    case 2:
      return window / 2 - 10 + Below(random, 20);
    case 3:
      return Below(random, 6 * window);
    case 4:
      return 100'000 + Below(random, 100'000);
    default:
      return Below(random, 3'000);
  }
}

Call NewCall(Random& random, int32_t id, const std::string& name, size_t window) {
  constexpr const char* kMethods[] = {"Collect", "Late", "Echo"};
  Call call;
  call.id = id;
  const auto method = Below(random, 3);
  call.echoes = method == 2;
  call.path = std::string("/t/") + kMethods[method] + "/" + name;
  const size_t count = Below(random, 5);
  for (size_t i = 0; i < count; ++i) {
    call.messages.push_back(Pattern(random(), RandomSize(random, window)));
    call.left += Prefixed(call.messages.back());
  }
  const auto end = Below(random, 12);
  call.wanted = end == 0 ? End::kReset : end == 1 ? End::kBroken : End::kEnded;
  if (call.wanted == End::kBroken && !call.left.empty()) {
    call.left.resize(Below(random, call.left.size()));
  } else if (call.wanted == End::kBroken) {
    call.wanted = End::kEnded;
  }
  return call;
}

// A frame of a call, or the call's end.
void SaySomething(Random& random, Client& client, World& world, Call& call) {
  const bool resets = call.wanted == End::kReset && (call.left.empty() || OneIn(random, 6));
  if (resets) {
    client.Say(Rst(call.id));
    call.end = End::kReset;
    return;
  }
  constexpr size_t kFrames[] = {1, 9, 100, 5'000, 16'384, 16'384, 16'384, 65'536, 100'000};
  size_t frame = kFrames[Below(random, 9)];
  const int padding = OneIn(random, 5) ? static_cast<int>(Below(random, 256)) : -1;
  const int frames = OneIn(random, 3) ? 6 : 1;
  for (int i = 0; i < frames; ++i) {
    if (OneIn(random, 8)) frame = kFrames[Below(random, 9)];
    const std::string part = call.left.substr(0, frame);
    call.left.erase(0, part.size());
    const bool ends = call.left.empty() && call.wanted != End::kReset && OneIn(random, 2);
    ASSERT_TRUE(client.SayFrames(call.id, part, frame, ends, padding))
        << call.path << " stands still with " << call.left.size() + part.size() << " bytes to go, "
        << world.receiving().held_bytes() << " held; frames of " << frame << ", padding " << padding
        << ", " << part.size() << " in this one, window " << client.Room(call.id);
    if (ends) call.end = call.wanted;
    if (call.left.empty()) break;
  }
  if (call.left.empty() && call.end == End::kOpen && call.wanted != End::kReset &&
      OneIn(random, 2)) {
    // Trailers end it as well as data.
    client.Say(OneIn(random, 2) ? Data(call.id, "", true) : Headers(call.id, {{"a", "b"}}, true));
    call.end = call.wanted;
  }
}

void Check(Client& client, World& world, Call& call) {
  SCOPED_TRACE(call.path);
  if (call.end == End::kReset) {
    // The call may never have begun; if it has, it ends.
    const Seen begun = world.When(call.path, [](const Seen&) { return true; });
    if (begun.begun == 0) return;
  }
  const int status = call.end == End::kReset ? -1 : client.Status(call.id);
  const Seen seen = world.Over(call.path);
  ASSERT_EQ(seen.begun, 1);
  ASSERT_LE(seen.messages.size(), call.messages.size());
  for (size_t i = 0; i < seen.messages.size(); ++i) {
    ASSERT_TRUE(seen.messages[i] == call.messages[i]) << "message " << i;
  }
  if (call.end == End::kEnded) {
    ASSERT_EQ(status, 0) << client.stream(call.id).Trailer("grpc-message");
    ASSERT_EQ(seen.messages.size(), call.messages.size());
    ASSERT_TRUE(seen.sent);
    if (call.echoes) {
      ASSERT_TRUE(client.stream(call.id).Messages() == call.messages);
    }
  } else if (call.end == End::kBroken) {
    // 0: cut off between messages; -1: an echo was under way and was cut off as well.
    ASSERT_TRUE(status == 3 || status == 0 || (status == -1 && call.echoes)) << status;
    ASSERT_LE(seen.messages.size() + (status == 3 ? 1 : 0), call.messages.size());
  }
}

void OneScript(uint64_t seed) {
  SCOPED_TRACE("QUANTD_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  World::Options options;
  constexpr std::array<uint64_t, 3> kWindows = {64 << 10, 256 << 10, admission::Receiving::kStep};
  options.window = kWindows[Below(random, kWindows.size())];
  options.budget = 256 << 20;
  World world(options);
  Client client(world.Connect(), {{4, OneIn(random, 4) ? 1'000U : 65'535U}, {5, 100'000}});
  client.pads_always = OneIn(random, 2);
  if (OneIn(random, 3)) client.write_at_once = 1 + Below(random, 20'000);
  ASSERT_TRUE(client.Heard());
  std::deque<Call> calls;
  int32_t id = 1;
  const size_t count = 1 + Below(random, 6);
  size_t open = 0;
  do {
    if (calls.size() < count && (open == 0 || OneIn(random, 4))) {
      calls.push_back(NewCall(random, id, std::to_string(id), options.window));
      client.Say(CallHead(id, calls.back().path));
      world.Release(calls.back().path, 100);
      id += 2;
    }
    Call& call = calls[Below(random, calls.size())];
    if (call.end == End::kOpen) SaySomething(random, client, world, call);
    if (testing::Test::HasFatalFailure()) return;
    if (OneIn(random, 5)) client.Say(Ping(random()));
    if (OneIn(random, 10)) client.Pump(std::chrono::milliseconds(0));
    if (OneIn(random, 200)) {
      const World::Pause pause(world);
      client.Until([] { return false; }, std::chrono::milliseconds(1));
    }
    open = 0;
    for (const Call& each : calls) open += each.end == End::kOpen ? 1 : 0;
  } while (calls.size() < count || open > 0);
  if (OneIn(random, 10)) {
    // The client disconnects without a word; nothing of it is left (World checks that).
    client.Written();
    shutdown(client.fd(), SHUT_RDWR);
    return;
  }
  ASSERT_TRUE(client.Heard());
  for (Call& call : calls) {
    Check(client, world, call);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// QUANTD_RANDOM_SECONDS makes it longer.
TEST(Random, CallsSeeWhatWasSent) {
  const uint64_t seed = loop::TestSeed();
  const char* const text = std::getenv("QUANTD_RANDOM_SECONDS");
  const auto until =
      loop::Clock::now() + std::chrono::seconds(text == nullptr ? 3 : std::atoi(text));
  uint64_t scripts = 0;
  do {
    OneScript(seed + scripts);
    ++scripts;
  } while (!HasFatalFailure() && !HasFailure() && loop::Clock::now() < until);
  std::printf("%llu scripts\n", static_cast<unsigned long long>(scripts));
}

}  // namespace
}  // namespace quantd::transport
