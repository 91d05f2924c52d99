// Compressed messages: the time that one takes of the loop at once, and whose is next.
#include "server/transport/inflater.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "frames.h"

namespace quantd::transport {
namespace {

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

// Ten bits each that contain nothing: 0 (not the last one), 10 (fixed codes), 0000000 (its end).
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

// What writes nothing does not fill a slice: time ends it as well.
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

TEST(Inflater, PeersTakeTurns) {
  World world;
  const std::string large = Deflated(std::string(1 << 20, 'x'));
  const std::string small = Deflated("small");
  std::vector<std::string> order;
  size_t left = 0;
  std::vector<std::unique_ptr<Message>> messages;
  const auto add = [&](const std::string& name, uint64_t peer, const std::string& bytes,
                       size_t size) {
    ++left;
    messages.push_back(
        std::make_unique<Message>([&, name, size](const absl::Status& status, size_t got) {
          EXPECT_TRUE(status.ok()) << status;
          EXPECT_EQ(got, size);
          order.push_back(name);
          if (--left == 0) world.loop->Stop();
        }));
    world.inflater.Add(*messages.back(), peer, Encoding::kDeflate, View(bytes), size);
  };
  world.Lead([&] {
    for (int i = 0; i < 3; ++i) add("large", 1, large, 1 << 20);
    add("removed", 1, large, 1 << 20);
    add("small", 2, small, 5);
    world.inflater.Remove(*messages[3]);
    --left;
  });
  EXPECT_EQ(order, (std::vector<std::string>{"large", "small", "large", "large"}));
}

}  // namespace
}  // namespace quantd::transport
