// Compressed messages: how long one may hold the loop, and whose turn is next.
#include "server/transport/inflater.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../loop/loop_testing.h"

namespace quantd::transport {
namespace inflater_test {

absl::Span<const uint8_t> View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// "small", in one block that is not compressed.
const std::string kSmall("\x78\x01\x01\x05\x00\xFA\xFFsmall\x06\x5F\x02\x1A", 16);

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

// The peers whose messages are done, in this order.
class Turns {
 public:
  // `valid`: all of the bytes are a message of `size` bytes.
  void Add(const std::string& name, uint64_t peer, const std::string& bytes, size_t size,
           bool valid = true) {
    ++left_;
    Message& message = messages_.emplace_back(*this, name, size, valid);
    inflater_.Add(message, peer, Encoding::kDeflate, View(bytes), size);
  }
  void Remove(size_t message) {
    inflater_.Remove(messages_[message]);
    --left_;
  }
  // Leads the loop until all messages are done.
  std::vector<std::string> Lead(std::function<void()> first) {
    loop::Job job(std::move(first));
    loop_->Post(job);
    loop_->Lead();
    return order_;
  }
  loop::Loop& loop() { return *loop_; }

 private:
  struct Message final : Inflating {
    Message(Turns& its_turns, std::string its_name, size_t its_size, bool is_valid)
        : turns(its_turns), name(std::move(its_name)), whole(its_size), valid(is_valid) {}
    void OnInflated(const absl::Status& status, memory::Buffer, size_t size) override {
      EXPECT_EQ(status.message(),
                valid ? "" : "the message is not valid deflate: it ends too early");
      if (valid) {
        EXPECT_EQ(size, whole);
      }
      turns.order_.push_back(name);
      if (--turns.left_ == 0) turns.loop_->Stop();
    }
    Turns& turns;
    const std::string name;
    const size_t whole;
    const bool valid;
  };

  memory::Pool pool_;
  std::unique_ptr<loop::Loop> loop_ = loop::NewLoop();
  Inflater inflater_{*loop_, pool_};
  std::deque<Message> messages_;
  std::vector<std::string> order_;
  size_t left_ = 0;
};

// Turns are by time, because bytes that inflate to nothing never fill a slice: while one message
// takes some 100 ms, another peer gets all of its messages, one after another.
TEST(Inflater, AMessageThatTakesLongLetsThoseOfOthersPass) {
  Turns turns;
  const std::string empty = EmptyBlocks(1 << 20);
  std::vector<std::string> expected(20, "small");
  expected.insert(expected.end(), {"empty", "waits for it"});
  const std::vector<std::string> order = turns.Lead([&] {
    turns.Add("empty", 1, empty, 64 << 20, false);
    turns.Add("waits for it", 1, kSmall, 5);
    for (int i = 0; i < 20; ++i) turns.Add("small", 2, kSmall, 5);
  });
  EXPECT_EQ(order, expected);
}

TEST(Inflater, OneThatIsRemovedInTheMiddleHoldsNobody) {
  Turns turns;
  const std::string empty = EmptyBlocks(1 << 20);
  int iterations = 0;
  loop::Job remover([&] {
    if (++iterations < 5) return turns.loop().AtIterationEnd(remover);
    turns.Add("small", 2, kSmall, 5);
    turns.Remove(0);
  });
  const std::vector<std::string> order = turns.Lead([&] {
    for (uint64_t peer = 0; peer < 40; ++peer) turns.Add("removed", peer, empty, 1 << 20, false);
    turns.loop().AtIterationEnd(remover);
    for (size_t i = 1; i < 40; ++i) turns.Remove(i);
  });
  EXPECT_EQ(order, std::vector<std::string>{"small"});
}

}  // namespace inflater_test
}  // namespace quantd::transport
