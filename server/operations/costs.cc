#include "server/operations/costs.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace quantd::operations {
namespace {

// The assumption for a kind that has not been seen: 4 GB/s; and for values, which are parsed,
// packed and written one by one.
constexpr float kUnknown = 0.25F;
constexpr float kUnknownValues = 10;
// A small request takes some time even with few bytes.
constexpr uint64_t kLeastBytes = 4096;
// The lower limit: memory can't be read faster.
constexpr float kLeast = 0.002F;

size_t Row(DataType type) {
  const DataTypeInfo* const info = FindDataType(static_cast<int>(type));
  return info == nullptr ? 1 : static_cast<size_t>(info - kDataTypes.data());
}

struct Traits {
  DataType input;
  DataType output;
  bool report = false;
  bool many_scales = false;  // more than one per 64 elements; lengths of embeddings
  uint64_t bytes = 0;
};

bool Many(uint64_t scale_bytes, uint64_t x_bytes) { return scale_bytes * 64 > x_bytes; }

// The tensors of parameters are read as a whole, even if x is empty.
template <typename Parameters>
uint64_t ScaleBytes(const Parameters& request) {
  return request.scale.bytes.size() +
         (request.zero_point.has_value() ? request.zero_point->bytes.size() : 0);
}

Traits TraitsOf(const QuantizeParameters& request) {
  const DataType output =
      request.zero_point.has_value() ? request.zero_point->data_type : request.output_type;
  return {request.x.data_type, output, request.report_error,
          Many(request.scale.bytes.size(), request.x.bytes.size()),
          std::max<uint64_t>(request.x.bytes.size(), ScaleBytes(request))};
}
Traits TraitsOf(const DequantizeParameters& request) {
  // The bytes of x converted to FLOAT.
  const uint64_t wide =
      request.x.bytes.size() * 32 / static_cast<uint64_t>(Info(request.x.data_type).bits);
  return {request.x.data_type, request.output_type, false, Many(request.scale.bytes.size(), wide),
          std::max<uint64_t>(request.x.bytes.size() + wide, ScaleBytes(request))};
}
Traits TraitsOf(const DynamicQuantizeParameters& request) {
  const Granularity& granularity = request.granularity;
  const bool small_blocks =
      (granularity.block_size > 0 && granularity.block_size < 64) ||
      (!granularity.block_shape.empty() && granularity.block_shape.back() > 0 &&
       granularity.block_shape.back() < 64);
  return {request.x.data_type, request.output_type, request.report_error, small_blocks,
          request.x.bytes.size()};
}

// Vectors with few elements count as this many bytes each.
uint64_t RowBytes(const TensorView& x, bool lengths) {
  constexpr uint64_t kBytes = 64;
  constexpr uint64_t kBytesWithLength = 512;
  const int64_t width = x.shape.empty() ? 0 : x.shape.back();
  if (width <= 0) return 0;
  const uint64_t elements = x.bytes.size() * 8 / static_cast<uint64_t>(Info(x.data_type).bits);
  return elements / static_cast<uint64_t>(width) * (lengths ? kBytesWithLength : kBytes);
}

// Bits are UINT8, too, but four times as fast as recipes that divide, so they use the row of a type
// that embeddings never have. Vectors whose length is needed first do the same.
Traits TraitsOf(const QuantizeEmbeddingsParameters& request) {
  DataType output = request.output_type;
  if (request.recipe == EmbeddingRecipe::kBits) output = DataType::kUint2;
  const bool lengths = request.normalize || request.recipe == EmbeddingRecipe::kDirection;
  const uint64_t ranges = request.ranges.has_value() ? request.ranges->bytes.size() : 0;
  return {request.x.data_type, output, request.report_error, lengths,
          std::max({uint64_t{request.x.bytes.size()}, ranges, RowBytes(request.x, lengths)})};
}

CostKind KindOf(size_t operation, const Traits& traits, bool values) {
  size_t index = operation;
  index = index * kDataTypes.size() + Row(traits.input);
  index = index * kDataTypes.size() + Row(traits.output);
  index = index * 2 + traits.report;
  index = index * 2 + traits.many_scales;
  index = index * 2 + values;
  return {index, std::max(traits.bytes, kLeastBytes)};
}

}  // namespace

CostKind KindOf(const wire::Request& request) {
  const Traits traits =
      std::visit([](const auto& parameters) { return TraitsOf(parameters); }, request.parameters);
  // Values of x do not count here: they are decoded before the work is timed.
  const bool values = request.output_encoding == wire::Encoding::kValues;
  return KindOf(request.parameters.index(), traits, values);
}

Costs::Costs() {
  for (size_t i = 0; i < kKinds; ++i) {
    const bool values = i % 2 == 1;
    const bool report = i / 4 % 2 == 1;
    nanoseconds_a_byte_[i] = -(values ? kUnknownValues : report ? 4 * kUnknown : kUnknown);
  }
}

std::chrono::nanoseconds Costs::Estimate(const CostKind& kind) const {
  const float each = std::abs(nanoseconds_a_byte_[kind.index].load(std::memory_order_relaxed));
  return std::chrono::nanoseconds(
      static_cast<int64_t>(static_cast<double>(each) * static_cast<double>(kind.bytes)));
}

void Costs::Learn(const CostKind& kind, std::chrono::nanoseconds took) {
  std::atomic<float>& known = nanoseconds_a_byte_[kind.index];
  const auto seen =
      static_cast<float>(static_cast<double>(took.count()) / static_cast<double>(kind.bytes));
  const float before = known.load(std::memory_order_relaxed);
  // Increases by two percent at a time, so that one fast request does not decide for ever. An
  // assumption is replaced at once.
  const float most = before < 0 ? seen : before * 1.02F;
  const float next = std::max(std::min(seen, most), kLeast);
  if (next != before) known.store(next, std::memory_order_relaxed);
}

}  // namespace quantd::operations
