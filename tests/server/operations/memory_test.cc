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
      ASSERT_LE(planned->memory_bytes() + operation.response_layout().y.bytes,
                operation.memory_bytes() + ranges + 1024);
      if (shared.output->byte_size == 0) return;
      --shared.output->byte_size;
      const absl::Status small = Plan(shared).status();
      ASSERT_EQ(ErrorField(small), "output.byte_size") << small;
    });
  }
}

// For Quantize and Dequantize the bound is exact except for columns that a plan makes of parameters
// (at most three of 4 bytes). For DynamicQuantize a scale may be smaller than FLOAT, and there may
// be no zero point.
TEST(MemoryBoundTest, OfRawRequestsItIsExactButForTheirParameters) {
  const auto elements = [](const TensorView& tensor) { return *ElementCount(tensor.shape, ""); };
  const auto count = [&](const auto& parameters) -> int64_t {
    using Parameters = std::decay_t<decltype(parameters)>;
    if constexpr (std::is_same_v<Parameters, QuantizeEmbeddingsParameters>) {
      return parameters.ranges ? elements(*parameters.ranges) / 2 : 0;
    } else if constexpr (!std::is_same_v<Parameters, DynamicQuantizeParameters>) {
      return elements(parameters.scale) +
             (parameters.zero_point ? elements(*parameters.zero_point) : 0);
    }
    return 0;
  };
  for (size_t i = 0; i < kOperations; ++i) {
    ForManyPlans(kMethods[i].method, 10'000, [&](wire::Request request, const Operation&) {
      request.output_encoding = wire::Encoding::kRaw;
      const absl::StatusOr<Operation> operation = Plan(request);
      ASSERT_TRUE(operation.ok()) << operation.status();
      if (operation->elements() == 0) return;
      const uint64_t bound = MemoryBound(request);
      const uint64_t memory = operation->memory_bytes();
      if (operation->method() == Method::kDynamicQuantize) {
        const auto scales = static_cast<uint64_t>(operation->response_layout().y_scale->elements);
        ASSERT_GE(bound, memory);
        ASSERT_LE(bound, memory + 7 * scales + 300);
        return;
      }
      const uint64_t parameters = std::visit(count, request.parameters);
      // The memory of a plan of embeddings is known when it is made.
      const bool is_embeddings = operation->method() == Method::kQuantizeEmbeddings;
      ASSERT_GE(bound, memory + (is_embeddings ? 0 : 12 * parameters));
      // Groups have fewer scales than zero points and scales together.
      ASSERT_LE(bound, memory + (12 + 32) * parameters + 36) << "3 that fill a byte";
      if (parameters == 1) {
        ASSERT_EQ(bound, memory + (is_embeddings ? 0 : 12));
      }
    });
  }
}

// Most requests are like these: the bound must not make them wait for memory that they never take.
TEST(MemoryBoundTest, IsExactForPlainRequests) {
  const Shape shape = {1000, 999};
  int compared = 0;
  for (const DataTypeInfo& wide : kDataTypes) {
    if (wide.kind != DataTypeKind::kFloat) continue;
    for (const DataTypeInfo& narrow : kDataTypes) {
      if (narrow.kind == DataTypeKind::kExponent || narrow.kind == DataTypeKind::kFloat ||
          narrow.type == DataType::kInt32) {
        continue;
      }
      const wire::Request requests[] = {
          Of(QuantizeParameters{.x = MakeView(wide.type, shape),
                                .scale = MakeView(DataType::kFloat, {}),
                                .zero_point = MakeView(narrow.type, {}, true)}),
          Of(DequantizeParameters{.x = MakeView(narrow.type, shape),
                                  .scale = MakeView(wide.type, {})}),
          Of(DynamicQuantizeParameters{
              .x = MakeView(wide.type, shape), .output_type = narrow.type, .report_error = true}),
      };
      for (const wire::Request& request : requests) {
        const absl::StatusOr<Operation> operation = Plan(request);
        ASSERT_TRUE(operation.ok()) << operation.status();
        EXPECT_GE(MemoryBound(request), operation->memory_bytes());
        EXPECT_LE(MemoryBound(request), operation->memory_bytes() + 256)
            << Name(request.method()) << ' ' << wide.name << ' ' << narrow.name;
        // The packed response, 32 bytes per scale, and what even the smallest request takes.
        EXPECT_LE(operation->memory_bytes(), operation->output_bytes() + (65U << 10));
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 3 * 15 * 3);
}

// A plan refuses other types of zero points, so the bound need not consider them. With
// BEFORE_ROUNDING the zero point may have a narrower type than the response.
TEST(MemoryBoundTest, IsOfTheResponsesTypeBeforeRounding) {
  for (const DataType type : {DataType::kUint16, DataType::kUint8, DataType::kUint4}) {
    for (const DataType of_zero_point : {DataType::kUint8, DataType::kInt8, DataType::kInt32}) {
      QuantizeParameters request;
      request.x = MakeView(DataType::kFloat, {1000, 100});
      request.scale = MakeView(DataType::kFloat, {});
      request.zero_point = MakeView(of_zero_point, {});
      request.output_type = type;
      request.zero_point_order = ZeroPointOrder::kBeforeRounding;
      const absl::StatusOr<Operation> operation = Plan(Of(request));
      ASSERT_TRUE(operation.ok()) << operation.status();
      EXPECT_GE(MemoryBound(Of(request)), operation->memory_bytes()) << Name(type);
    }
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

// A task's own ranges take a quarter of x, if there are many scales and x is in shared memory.
TEST(MemoryBoundTest, OwnRangesAreCountedFromManyScalesOn) {
  EXPECT_EQ(OwnRangesBytes(1024, 1 << 20), 0u);
  EXPECT_EQ(OwnRangesBytes(1025, 1 << 20), 1u << 18);
  EXPECT_EQ(OwnRangesBytes(1025, (256 << 20) - 4), (64u << 20) - 1);
  EXPECT_EQ(OwnRangesBytes(1025, uint64_t{1} << 40), 64u << 20);
  for (const int64_t scales : {1024, 1025}) {
    DynamicQuantizeParameters dynamic;
    dynamic.x = MakeView(DataType::kFloat, {scales, 100});
    dynamic.granularity.axis = 0;
    wire::Request request = Of(dynamic);
    const uint64_t bound = MemoryBound(request);
    const uint64_t memory = Plan(request)->memory_bytes();
    request.shared.push_back({wire::TensorField::kX, {"x", 0, dynamic.x.bytes.size()}});
    const uint64_t ranges = scales > 1024 ? dynamic.x.bytes.size() / 4 : 0;
    EXPECT_EQ(MemoryBound(request), bound + ranges);
    EXPECT_EQ(Plan(request)->memory_bytes(), memory + ranges);
  }
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

// Otherwise, a request would be refused for its memory and not for its error.
TEST(MemoryBoundTest, OfWhatThePlanRefusesHasRoomForThePlan) {
  QuantizeEmbeddingsParameters parameters;
  parameters.x = MakeView(DataType::kFloat, {2, 1000});
  parameters.x.shape = {3, 1000};  // more than its bytes
  parameters.recipe = EmbeddingRecipe::kRanges;
  parameters.ranges = MakeView(DataType::kFloat, {2, 1000});
  wire::Request request;
  request.parameters = parameters;
  EXPECT_EQ(PlanBytes(request), 12'000u);
  EXPECT_GE(MemoryBound(request), PlanBytes(request));
  EXPECT_TRUE(absl::IsInvalidArgument(Plan(request).status()));
  // Ranges that are refused before they are copied into columns.
  parameters.ranges = MakeView(DataType::kUint2, {2, 100'000});
  request.parameters = parameters;
  EXPECT_EQ(PlanBytes(request), 0u);
}

}  // namespace
}  // namespace quantd::operations
