// What is calculated for a request before it is planned, against its plan.
#include "server/operations/memory.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>

#include "quantd/field_error.h"
#include "random_parameters.h"
#include "request_generator.h"
#include "server/operations/operation.h"
#include "server/operations/scratch_bytes.h"
#include "server/wire/decode.h"
#include "wire_testing.h"

namespace quantd::operations {
namespace {

using wire::kMethods;
using wire::kOperations;
using wire::Method;
using wire::Random;

template <typename Parameters>
wire::Request Of(Parameters parameters) {
  wire::Request request;
  request.parameters = std::move(parameters);
  return request;
}

// Calls check(request, operation) for many requests that a plan accepts.
template <typename Check>
void ForManyPlans(Method method, int requests, Check check) {
  const uint64_t seed = wire::TestSeed(20261124);
  int planned = 0;
  for (int i = 0; i < requests; ++i) {
    Random random(seed + i);
    const wire::Request request = RandomParameters(method, random);
    const absl::StatusOr<Operation> operation = Plan(request);
    if (!operation.ok()) continue;
    ++planned;
    check(request, *operation);
    if (testing::Test::HasFailure()) FAIL() << "QUANTD_TEST_SEED=" << seed + i;
  }
  std::printf("%s: %d of %d requests planned\n", std::string(Name(method)).c_str(), planned,
              requests);
  EXPECT_GT(planned, requests / 10);
}

TEST(MemoryBoundTest, IsWhatThePlanSaysAndLittleMore) {
  for (size_t i = 0; i < kOperations; ++i) {
    ForManyPlans(kMethods[i].method, 30'000, [](const auto& request, const Operation& operation) {
      const uint64_t bound = MemoryBound(request);
      ASSERT_GE(bound, operation.memory_bytes());
      // An empty tensor may have some MiB of scales, and mostly has none.
      const bool values = request.output_encoding == wire::Encoding::kValues;
      const uint64_t of_empty = operation.elements() > 0 ? 0 : values ? 8 << 20 : 3 << 20;
      ASSERT_LE(bound, 3 * operation.memory_bytes() + of_empty);
    });
  }
}

TEST(ResponseBoundTest, IsWhatThePlanSaysAndLittleMore) {
  for (size_t i = 0; i < kOperations; ++i) {
    ForManyPlans(kMethods[i].method, 10'000, [](const auto& request, const Operation& operation) {
      const uint64_t bytes = wire::MaxEncodedBytes(operation.response_layout());
      ASSERT_GE(ResponseBound(request), bytes);
      // As above; besides, scales count as FLOAT.
      const bool values = request.output_encoding == wire::Encoding::kValues;
      const uint64_t of_empty = operation.elements() > 0 ? 0 : values ? 8 << 20 : 3 << 20;
      ASSERT_LE(ResponseBound(request), 6 * bytes + of_empty);
    });
  }
}

// Tensors in shared memory are not the server's memory.
TEST(MemoryBoundTest, OfTensorsInSharedMemoryThereIsTheRest) {
  for (size_t i = 0; i < kOperations; ++i) {
    ForManyPlans(kMethods[i].method, 10'000, [](const auto& request, const Operation& operation) {
      if (request.output_encoding == wire::Encoding::kValues) return;
      wire::Request shared = request;
      shared.shared.push_back({wire::TensorField::kX, {"x", 0, operation.input_bytes()}});
      shared.output = {"y", 0, operation.response_layout().y.bytes};
      const absl::StatusOr<Operation> planned = Plan(shared);
      ASSERT_TRUE(planned.ok()) << planned.status();
      ASSERT_EQ(planned->output_bytes(), operation.output_bytes());
      ASSERT_GE(MemoryBound(shared), planned->memory_bytes());
      const uint64_t ranges = std::min<uint64_t>(operation.input_bytes() / 4, 64 << 20);
      // The pool makes what is left larger by a quarter at most.
      ASSERT_LE(planned->memory_bytes() / 5 * 4 + operation.response_layout().y.bytes,
                operation.memory_bytes() + ranges + 1024);
      if (shared.output->byte_size == 0) return;
      --shared.output->byte_size;
      const absl::Status small = Plan(shared).status();
      ASSERT_EQ(ErrorField(small), "output.byte_size") << small;
    });
  }
}

TEST(MemoryBoundTest, OfAnythingItIsANumber) {
  const Shape huge = {int64_t{1} << 40, int64_t{1} << 40};
  const Shape empty = {0, int64_t{1} << 61};
  for (const Shape& shape : {huge, empty, Shape{-1}, Shape(64, 2)}) {
    for (const int64_t axis : {int64_t{0}, int64_t{1}, int64_t{-2}, INT64_MAX, INT64_MIN}) {
      for (const int64_t block : {int64_t{0}, int64_t{1}, INT64_MAX, INT64_MIN}) {
        DynamicQuantizeParameters request;
        request.x = MakeView(DataType::kFloat, shape);
        request.granularity.axis = axis;
        request.granularity.block_size = block;
        EXPECT_LE(MemoryBound(Of(request)), 8U << 20);
        request.granularity = {.block_shape = Shape(shape.size(), block)};
        EXPECT_LE(MemoryBound(Of(request)), 8U << 20);
      }
    }
  }
}

// Nothing is reserved for a request that a plan refuses at once, wherever its x is.
TEST(MemoryBoundTest, OfWhatHasNoResponseItIsNothing) {
  DynamicQuantizeParameters dynamic;
  dynamic.x = MakeView(DataType::kFloat, {2000, 10});
  dynamic.granularity.axis = 0;
  wire::Request request = Of(dynamic);
  EXPECT_GT(MemoryBound(request), 20'000u);
  dynamic.x.shape = {2000, 11};
  request = Of(dynamic);
  EXPECT_EQ(MemoryBound(request), 0u);
  request.shared.push_back({wire::TensorField::kX, {"x", 0, 88'000}});
  EXPECT_EQ(MemoryBound(request), 0u);
}

// As they arrive over the wire: with values, tiny shapes and anything else that the generator
// makes.
TEST(MemoryBoundTest, IsNeverLessThanThePlanSaysOfMessages) {
  const uint64_t seed = wire::TestSeed(20261125);
  for (size_t i = 0; i < kOperations; ++i) {
    int planned = 0;
    for (int j = 0; j < 10'000; ++j) {
      Random random(seed + j);
      const std::string message = wire::RandomRequest(kMethods[i].method, random);
      const auto request = wire::DecodeRequest(kMethods[i].method, wire::View(message));
      if (!request.ok()) continue;
      const uint64_t bound = MemoryBound(*request);
      const auto operation = Plan(*request);
      if (!operation.ok()) continue;
      ++planned;
      ASSERT_GE(bound, operation->memory_bytes()) << "QUANTD_TEST_SEED=" << seed + j;
    }
    EXPECT_GT(planned, 4'000) << Name(kMethods[i].method);
  }
}

}  // namespace
}  // namespace quantd::operations
