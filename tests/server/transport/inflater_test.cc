// Compressed messages: how long one may hold the loop, and whose turn is next.
#include "server/transport/inflater.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "frames.h"

namespace quantd::transport {
namespace inflater_test {

class Message final : public Inflating {
 public:
  explicit Message(std::function<void(const absl::Status&, size_t)> told)
      : told_(std::move(told)) {}

 private:
  void OnInflated(const absl::Status& status, memory::Buffer /*buffer*/, size_t size) override {
    told_(status, size);
  }
  const std::function<void(const absl::Status&, size_t)> told_;
};

class Job final : public loop::Posted {
 public:
  explicit Job(std::function<void()> run) : run_(std::move(run)) {}

 private:
  void Run() override { run_(); }
  const std::function<void()> run_;
};

absl::Span<const uint8_t> View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

std::string Deflated(const std::string& plain) {
  std::string bytes(compressBound(plain.size()), '\0');
  uLongf size = bytes.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                     reinterpret_cast<const Bytef*>(plain.data()), plain.size()),
            Z_OK);
  bytes.resize(size);
  return bytes;
}

// Blocks of ten bits that contain nothing: 0 (not the last one), 10 (fixed codes), 0000000 (end).
std::string EmptyBlocks(size_t size) {
  std::string bytes = "\x78\x9c";
  for (size_t bit = 0; bytes.size() < size;) {
    unsigned byte = 0;
    for (int i = 0; i < 8; ++i, ++bit) byte |= (bit % 10 == 1 ? 1U : 0U) << i;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

struct World {
  memory::Pool pool;
  std::unique_ptr<loop::Loop> loop = *loop::Loop::Create();
  Inflater inflater{*loop, pool};

  void Lead(std::function<void()> first) {
    Job job(std::move(first));
    loop->Post(job);
    loop->Lead();
  }
};

// Bytes that inflate to nothing never fill a slice: the slice must also end by time.
TEST(Inflater, BlocksThatContainNothingHoldTheLoopForAShortTime) {
  World world;
  const std::string bytes = EmptyBlocks(4 << 20);
  int iterations = 0;
  Job counter([&] {
    ++iterations;
    world.loop->AtIterationEnd(counter);
  });
  absl::Status told;
  Message message([&](const absl::Status& status, size_t) {
    told = status;
    world.loop->Stop();
  });
  world.Lead([&] {
    world.loop->AtIterationEnd(counter);
    world.inflater.Add(message, 1, Encoding::kDeflate, View(bytes), 64 << 20);
  });
  EXPECT_EQ(told.message(), "the message is not valid deflate: it ends too early");
  EXPECT_GT(iterations, 10);
}

// The peers whose messages are done, in this order.
struct Turns {
  World world;
  std::vector<std::unique_ptr<Message>> messages;
  std::vector<std::string> order;
  size_t left = 0;

  void Add(const std::string& name, uint64_t peer, const std::string& bytes, size_t size,
           bool valid = true) {
    ++left;
    messages.push_back(std::make_unique<Message>(
        [this, name, size, valid](const absl::Status& status, size_t got) {
          EXPECT_EQ(status.ok(), valid) << status;
          if (valid) {
            EXPECT_EQ(got, size);
          }
          order.push_back(name);
          if (--left == 0) world.loop->Stop();
        }));
    world.inflater.Add(*messages.back(), peer, Encoding::kDeflate, View(bytes), size);
  }
  void Remove(size_t message) {
    world.inflater.Remove(*messages[message]);
    --left;
  }
};

// Turns are by time: while one message takes some 100 ms, another peer gets all of its messages,
// one after another.
TEST(Inflater, AMessageThatTakesLongLetsThoseOfOthersPass) {
  Turns turns;
  const std::string empty = EmptyBlocks(1 << 20);
  const std::string small = Deflated("small");
  turns.world.Lead([&] {
    turns.Add("empty", 1, empty, 64 << 20, false);
    turns.Add("waits for it", 1, small, 5);
    for (int i = 0; i < 20; ++i) turns.Add("small", 2, small, 5);
  });
  std::vector<std::string> expected(20, "small");
  expected.insert(expected.end(), {"empty", "waits for it"});
  EXPECT_EQ(turns.order, expected);
}

TEST(Inflater, OneThatIsRemovedInTheMiddleHoldsNobody) {
  Turns turns;
  const std::string empty = EmptyBlocks(1 << 20);
  const std::string small = Deflated("small");
  int iterations = 0;
  Job remover([&] {
    if (++iterations < 5) return turns.world.loop->AtIterationEnd(remover);
    turns.Add("small", 2, small, 5);
    turns.Remove(0);
  });
  turns.world.Lead([&] {
    for (uint64_t peer = 0; peer < 40; ++peer) turns.Add("removed", peer, empty, 1 << 20, false);
    turns.world.loop->AtIterationEnd(remover);
    for (size_t i = 1; i < 40; ++i) turns.Remove(i);
  });
  EXPECT_EQ(turns.order, std::vector<std::string>{"small"});
}

}  // namespace inflater_test
}  // namespace quantd::transport
