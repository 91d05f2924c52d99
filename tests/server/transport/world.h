// A transport with everything that it needs, and calls that record what they see.
//
//   World world;
//   Client client(world.Connect());
//   client.Say(CallHead(1, "/t/Collect/x") + Data(1, Prefixed("abc"), true));
//   EXPECT_EQ(client.Status(1), 0);
//   EXPECT_EQ(world.Over("/t/Collect/x").messages.front(), "abc");
//
// A path is "/t/METHOD/NAME"; the name tells calls apart:
//   Collect  reads every message until there are no more, then ends with OK.
//   Late     the same, but takes a message only after Release.
//   Echo     answers each message with the same bytes.
//   Send     "/t/Send/3x100/NAME": answers with 3 messages of 100 bytes, Pattern(i, 100), unasked.
//   Small    the same with 3 + i % 7 bytes, at most 100, without waiting in between; each message
//            has a buffer of 1 MiB.
//   Made     "/t/Made/100000x3000/NAME": answers with Pattern(0, 100000). 5,000 bytes exist at
//            first, the rest is made while it is sent, 3,000 at a time; 0: none can be made.
//   Wait     reads one message, then waits until it is interrupted.
#ifndef QUANTD_TESTS_SERVER_TRANSPORT_WORLD_H_
#define QUANTD_TESTS_SERVER_TRANSPORT_WORLD_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../loop/loop_testing.h"
#include "client.h"
#include "server/admission/receiving.h"
#include "server/memory/buffer.h"
#include "server/transport/connection_set.h"
#include "server/transport/server_call.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

// What a call saw.
struct Seen {
  int begun = 0;  // how many calls of this path there were
  std::vector<std::string> messages;
  bool ending = false;  // has called Finish
  bool over = false;    // has called End
  bool sent = false;    // the result of Finish
  int written = 0;      // writes that completed with true
  int made = 0;         // how often more was made
  absl::Status interruption;
};

class World final : public CallHandler {
 public:
  struct Options {
    Limits limits = {};
    uint64_t budget = 64 << 20;
    uint64_t window = 64 << 10;
    int64_t max_waiting = 100;
    int socket_bytes = 4 << 20;  // how much of an unread response the kernel takes
  };

  World() : World(Options()) {}
  explicit World(const Options& options);
  ~World();

  // A connection's other end.
  int Connect(uint64_t peer = 7);
  // Stops the loop while it lives, so that everything sent meanwhile is read at once.
  class Pause {
   public:
    explicit Pause(World& world);
    ~Pause();

   private:
    std::latch paused_{1};
    std::latch over_{1};
    loop::Job job_;
    std::latch done_{1};
  };

  // Waits for the end of a call, and returns what it saw.
  Seen Over(const std::string& path);
  // What it has seen so far, as soon as that satisfies the condition.
  Seen When(const std::string& path, const std::function<bool(const Seen&)>& so);
  // Lets a Late call take `messages` more.
  void Release(const std::string& path, int messages = 1);
  // Waits until no call and no connection is left.
  bool Empty();
  void Run(std::function<void()> function) { loop::RunOn(*loop_, std::move(function)); }

  ConnectionSet& set() { return *set_; }
  TransportContext& context() { return context_; }
  memory::Pool& pool() { return pool_; }
  admission::Receiving& receiving() { return receiving_; }
  loop::Loop& loop() { return *loop_; }

  std::atomic<bool> anyone_waits{false};
  // Calls of unknown methods.
  mutable std::atomic<int> refused{0};
  // Called on the loop's thread when more of a message was made, with the count for all calls.
  std::function<void(int)> on_made;

  // CallHandler.
  int Find(absl::string_view path) const override;
  void Begin(ServerCall& stream) override;
  wire::CallStatus Refuse(const ServerCall& stream, int method,
                          const absl::Status& status) const override;
  bool AnyoneWaits() const override { return anyone_waits; }

 private:
  loop::Detached Serve(ServerCall& stream);
  void Note(const std::string& path, const std::function<void(Seen&)>& what);
  int Releases(const std::string& path);

  memory::Pool pool_;
  admission::Receiving receiving_;
  TransportContext context_;
  const int socket_bytes_;
  const std::unique_ptr<loop::Loop> loop_;
  std::unique_ptr<ConnectionSet> set_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Seen> seen_;
  std::map<std::string, int> released_;
  std::atomic<int> live_{0};
  int made_ = 0;
};

}  // namespace quantd::transport

#endif  // QUANTD_TESTS_SERVER_TRANSPORT_WORLD_H_
