// What is calculated for a request before it is planned, against its plan.
#include "server/operations/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "parameters.h"
#include "quantd/field_error.h"
#include "server/operations/operation.h"
#include "wire_testing.h"

namespace quantd::operations {
namespace {

template <typename Parameters>
wire::Request Of(Parameters parameters) {
  wire::Request request;
  request.parameters = std::move(parameters);
  return request;
}

// That a plan never takes more is for the fuzzers (tests/fuzz).
TEST(MemoryBoundTest, IsLittleMoreThanThePlanTakes) {
  const uint64_t seed = wire::TestSeed(20261124);
  std::array<int, wire::kOperations> planned{};
  for (int i = 0; i < 60'000 && !HasFailure(); ++i) {
    wire::Random random(seed + i);
    SCOPED_TRACE("QUANTD_TEST_SEED=" + std::to_string(seed + i));
    const std::string bytes = fuzz::ParameterBytes(random);
    const fuzz::Parameters parameters(wire::View(bytes));
    const wire::Request& request = parameters.request();
    const absl::StatusOr<Operation> operation = Plan(request);
    if (!operation.ok()) continue;
    ++planned[wire::OperationIndex(request.method())];
    // An empty tensor may have some MiB of scales, and mostly has none.
    const bool values = request.output_encoding == wire::Encoding::kValues;
    const uint64_t of_empty = operation->elements() > 0 ? 0 : values ? 8 << 20 : 3 << 20;
    EXPECT_LE(MemoryBound(request), 3 * operation->memory_bytes() + of_empty);
    const uint64_t response = wire::MaxEncodedBytes(operation->response_layout());
    EXPECT_GE(ResponseBound(request), response);
    EXPECT_LE(ResponseBound(request), 6 * response + of_empty);  // its scales count as FLOAT
    if (values) continue;

    // Tensors in shared memory are not the server's memory.
    wire::Request shared = request;
    shared.shared.push_back({wire::TensorField::kX, {"x", 0, operation->input_bytes()}});
    shared.output = {"y", 0, operation->response_layout().y.bytes};
    const absl::StatusOr<Operation> elsewhere = Plan(shared);
    ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
    EXPECT_EQ(elsewhere->output_bytes(), operation->output_bytes());
    EXPECT_GE(MemoryBound(shared), elsewhere->memory_bytes());
    const uint64_t ranges = std::min<uint64_t>(operation->input_bytes() / 4, 64 << 20);
    // The pool makes what is left larger by a quarter at most.
    EXPECT_LE(elsewhere->memory_bytes() / 5 * 4 + operation->response_layout().y.bytes,
              operation->memory_bytes() + ranges + 1024);
    if (shared.output->byte_size == 0) continue;
    --shared.output->byte_size;
    EXPECT_EQ(ErrorField(Plan(shared).status()), "output.byte_size");
  }
  for (const int count : planned) EXPECT_GT(count, 1'000);
}

// A plan makes columns of ranges, unless it refuses them before.
TEST(PlanBytesTest, AreThoseOfColumns) {
  QuantizeEmbeddingsParameters request;
  request.x = fuzz::ViewOf(DataType::kFloat, {4, 1000});
  request.recipe = EmbeddingRecipe::kRanges;
  EXPECT_EQ(PlanBytes(Of(request)), 0u);
  const uint64_t without = MemoryBound(Of(request));
  request.ranges = fuzz::ViewOf(DataType::kFloat, {2, 1000});
  EXPECT_EQ(PlanBytes(Of(request)), 3u * 4 * 1000);
  EXPECT_EQ(MemoryBound(Of(request)), without + 3 * 4 * 1000);
  request.recipe = EmbeddingRecipe::kBits;
  EXPECT_EQ(PlanBytes(Of(request)), 0u);
  request.recipe = EmbeddingRecipe::kRanges;
  request.ranges = fuzz::ViewOf(DataType::kFloat16, {2, 1000});
  EXPECT_EQ(PlanBytes(Of(request)), 0u);
}

TEST(MemoryBoundTest, IsANumberForAnything) {
  const Shape huge = {int64_t{1} << 40, int64_t{1} << 40};
  const Shape empty = {0, int64_t{1} << 61};
  for (const Shape& shape : {huge, empty, Shape{-1}, Shape(64, 2)}) {
    for (const int64_t axis : {int64_t{0}, int64_t{1}, int64_t{-2}, INT64_MAX, INT64_MIN}) {
      for (const int64_t block : {int64_t{0}, int64_t{1}, INT64_MAX, INT64_MIN}) {
        DynamicQuantizeParameters request;
        request.x = fuzz::ViewOf(DataType::kFloat, shape);
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
TEST(MemoryBoundTest, IsNothingForWhatHasNoResponse) {
  DynamicQuantizeParameters dynamic;
  dynamic.x = fuzz::ViewOf(DataType::kFloat, {2000, 10});
  dynamic.granularity.axis = 0;
  wire::Request request = Of(dynamic);
  EXPECT_GT(MemoryBound(request), 20'000u);
  dynamic.x.shape = {2000, 11};
  request = Of(dynamic);
  EXPECT_EQ(MemoryBound(request), 0u);
  request.shared.push_back({wire::TensorField::kX, {"x", 0, 88'000}});
  EXPECT_EQ(MemoryBound(request), 0u);
}

}  // namespace
}  // namespace quantd::operations
