// What an operation does besides computing: it stops when it is no longer wanted, names the first
// wrong element whatever its threads do, and writes only into its own memory.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operations_random.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/field_error.h"
#include "quantd/quantize.h"

namespace quantd {
namespace operations_stop_test {

// The three operations on FLOAT elements in one piece, with one scale.
OwnedTensor Ones(int64_t elements) {
  OwnedTensor x(DataType::kFloat, {elements});
  for (int64_t i = 0; i < elements; ++i) x.Set(i, std::bit_cast<uint32_t>(1.0f));
  return x;
}

using Operation = std::function<absl::Status(const OwnedTensor&, const Executor&, Interrupted)>;

absl::Status RunQuantize(const OwnedTensor& x, const Executor& executor, Interrupted interrupted) {
  const OwnedTensor one = Ones(1);
  const auto plan = PlanQuantize({.x = x.View(), .scale = one.View()});
  if (!plan.ok()) return plan.status();
  std::vector<uint8_t> y(plan->output_bytes);
  return Quantize(*plan, x.bytes, executor, interrupted, absl::MakeSpan(y), nullptr);
}

absl::Status RunDequantize(const OwnedTensor& x, const Executor& executor,
                           Interrupted interrupted) {
  const OwnedTensor one = Ones(1);
  DequantizeParameters parameters{.x = x.View(), .scale = one.View()};
  parameters.x.data_type = DataType::kInt32;
  const auto plan = PlanDequantize(parameters);
  if (!plan.ok()) return plan.status();
  std::vector<uint8_t> y(plan->output_bytes);
  return Dequantize(*plan, x.bytes, executor, interrupted, absl::MakeSpan(y));
}

absl::Status RunBlocks(int64_t block, const OwnedTensor& x, const Executor& executor,
                       Interrupted interrupted) {
  DynamicQuantizeParameters parameters{.x = x.View()};
  parameters.granularity.block_shape = {block};
  const auto plan = PlanDynamicQuantize(parameters);
  if (!plan.ok()) return plan.status();
  DynamicAnswer answer(*plan);
  return DynamicQuantize(*plan, x.bytes, executor, interrupted, answer.Output(), nullptr);
}

absl::Status RunDynamicQuantize(const OwnedTensor& x, const Executor& executor,
                                Interrupted interrupted) {
  return RunBlocks(-1, x, executor, interrupted);
}

// In parts, each from its ranges to its codes.
absl::Status RunDynamicQuantizeInBlocks(const OwnedTensor& x, const Executor& executor,
                                        Interrupted interrupted) {
  return RunBlocks(32, x, executor, interrupted);
}

class StopTest : public testing::TestWithParam<Operation> {};

TEST_P(StopTest, NotStartedWhenNoLongerWanted) {
  const OwnedTensor x = Ones(4);
  const Executor executor(1);
  EXPECT_TRUE(absl::IsCancelled(GetParam()(x, executor, [] { return true; })));
  EXPECT_TRUE(GetParam()(x, executor, [] { return false; }).ok());
}

TEST_P(StopTest, StopsBetweenTiles) {
  const OwnedTensor x = Ones(8 << 20);  // 32 MiB
  for (int threads : {1, 4}) {
    const Executor executor(threads);
    std::atomic<int> asked{0};
    const auto interrupted = [&asked] { return ++asked >= 20; };
    EXPECT_TRUE(absl::IsCancelled(GetParam()(x, executor, interrupted)));
    // After the answer "stop", each thread may have asked once more, and no thread goes on.
    EXPECT_LE(asked.load(), 20 + threads);
  }
}

TEST_P(StopTest, AsksOnceIn64KiB) {
  const OwnedTensor x = Ones(1 << 20);  // 4 MiB: 64 periods a pass
  const Executor executor(1);
  int asked = 0;
  EXPECT_TRUE(GetParam()(x, executor, [&asked] { return ++asked < 0; }).ok());
  EXPECT_GE(asked, 60);
  EXPECT_LE(asked, 140);
}

// Threads wait for each other in the callback: a single thread would wait in vain.
TEST_P(StopTest, SeveralThreadsWork) {
  const OwnedTensor x = Ones(8 << 20);
  const Executor executor(4);
  std::mutex mutex;
  std::condition_variable came;
  std::set<std::thread::id> threads;
  bool in_vain = false;
  const auto interrupted = [&] {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    came.notify_all();
    const auto others = [&] { return threads.size() > 1 || in_vain; };
    if (!came.wait_for(lock, std::chrono::seconds(20), others)) in_vain = true;
    return false;
  };
  EXPECT_TRUE(GetParam()(x, executor, interrupted).ok());
  EXPECT_GT(threads.size(), 1U);
}

std::string NameOf(const testing::TestParamInfo<Operation>& operation) {
  static constexpr const char* kNames[] = {"Quantize", "Dequantize", "DynamicQuantize",
                                           "DynamicQuantizeInBlocks"};
  return kNames[operation.index];
}

INSTANTIATE_TEST_SUITE_P(Operations, StopTest,
                         testing::Values(RunQuantize, RunDequantize, RunDynamicQuantize,
                                         RunDynamicQuantizeInBlocks),
                         NameOf);

TEST(DynamicQuantizeErrors, NameTheFirstOfManyElements) {
  OwnedTensor x = Ones(2 << 20);
  const Executor executor(4);
  for (int64_t last : {2'000'000, 1'500'001, 700'000, 65'537, 3, 0}) {
    x.Set(last, std::bit_cast<uint32_t>(last % 2 == 0 ? NAN : -INFINITY));
    for (int round = 0; round < 5; ++round) {
      const absl::Status status = RunDynamicQuantize(x, executor, [] { return false; });
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_EQ(ErrorField(status), "x");
      EXPECT_NE(status.message().find(absl::StrCat("x[", last, "]")), absl::string_view::npos)
          << status;
    }
  }
}

TEST(Operations, WriteOnlyTheirOutput) {
  const Executor executor(2);
  const OwnedTensor one = Ones(1);
  for (int64_t elements : {1, 3, 5, 63, 65, 1025, 100'001}) {
    const OwnedTensor x = Ones(elements);
    for (DataType type : {DataType::kUint8, DataType::kInt16, DataType::kInt4, DataType::kUint2}) {
      const auto plan = PlanQuantize({.x = x.View(), .scale = one.View(), .output_type = type});
      ASSERT_TRUE(plan.ok()) << plan.status();
      std::vector<uint8_t> memory(plan->output_bytes + 128, 0xA5);
      const absl::Span<uint8_t> y = absl::MakeSpan(memory).subspan(64, plan->output_bytes);
      ASSERT_TRUE(Quantize(*plan, x.bytes, executor, [] { return false; }, y, nullptr).ok());
      for (size_t i = 0; i < 64; ++i) {
        ASSERT_EQ(memory[i], 0xA5);
        ASSERT_EQ(memory[memory.size() - 1 - i], 0xA5);
      }
    }
  }
}

// Many callers from outside of the pool share it, as the server's threads do.
TEST(Operations, RunFromManyThreadsAtOnce) {
  const Executor executor(2);
  std::atomic<int> good{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      const OwnedTensor x = Ones(300'000);
      for (int round = 0; round < 5; ++round) {
        good += RunQuantize(x, executor, [] { return false; }).ok();
        good += RunDynamicQuantize(x, executor, [] { return false; }).ok();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(good.load(), 40);
}

}  // namespace operations_stop_test
}  // namespace quantd
