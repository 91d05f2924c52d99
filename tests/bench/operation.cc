#include "operation.h"

#include <cstdlib>
#include <cstring>

#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"

namespace quantd::bench {
namespace {

bool Never() { return false; }

size_t Product(const Shape& shape) {
  size_t product = 1;
  for (const int64_t length : shape) product *= static_cast<size_t>(length);
  return product;
}

Shape ScaleShape(const Spec& spec) {
  const Granularity& granularity = spec.granularity;
  if (!granularity.axis.has_value() && granularity.block_shape.empty()) return {};
  if (granularity.axis.has_value() && granularity.block_size == 0) {
    return {spec.shape[static_cast<size_t>(*granularity.axis)]};
  }
  Shape counts = spec.shape;
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t block = 1;
    if (!granularity.block_shape.empty()) {
      block = granularity.block_shape[i];
    } else if (static_cast<int64_t>(i) == *granularity.axis) {
      block = granularity.block_size;
    }
    counts[i] = (counts[i] - 1) / block + 1;
  }
  return counts;
}

// Each differs from its neighbours, by about a 40th.
Memory Scales(size_t count) {
  Memory memory(count * sizeof(float));
  auto* scales = reinterpret_cast<float*>(memory.data());
  for (size_t i = 0; i < count; ++i) scales[i] = 0.0234375F * (1 + static_cast<float>(i % 7) / 16);
  return memory;
}

Memory ZeroPoints(size_t count) {
  Memory memory(count);
  std::memset(memory.data(), 1, count);
  return memory;
}

absl::Span<uint8_t> Room(const Memory& memory) { return {memory.data(), memory.size()}; }

}  // namespace

Memory::Memory(size_t bytes)
    : data_(static_cast<uint8_t*>(std::aligned_alloc(4096, (bytes + 4096) / 4096 * 4096)),
            std::free),
      size_(bytes) {
  std::memset(data_.get(), 0, bytes);
}

Memory Floats(size_t count) {
  Memory memory(count * sizeof(float));
  auto* floats = reinterpret_cast<float*>(memory.data());
  for (size_t i = 0; i < count; ++i) {
    const auto mixed = static_cast<uint32_t>(i * 2654435761U) >> 8;
    floats[i] = (static_cast<float>(mixed) / (1 << 24) - 0.5F) * 6;
  }
  return memory;
}

Memory Codes(size_t count) {
  Memory memory(count);
  for (size_t i = 0; i < count; ++i) memory.data()[i] = static_cast<uint8_t>(i * 2654435761U >> 8);
  return memory;
}

std::string NameOf(OperationKind kind) {
  constexpr const char* kNames[] = {"Quantize", "DynamicQuantize", "Dequantize"};
  return kNames[static_cast<size_t>(kind)];
}

Operation::Operation(const Spec& spec)
    : spec_(spec),
      elements_(Product(spec.shape)),
      scales_(Product(ScaleShape(spec))),
      x_(widens() ? Codes(elements_) : Floats(elements_)),
      scale_(Scales(scales_)),
      zero_point_(ZeroPoints(scales_)),
      y_(widens() ? elements_ * sizeof(float) : elements_),
      made_scale_(scales_ * sizeof(float)),
      made_zero_point_(scales_) {}

absl::Status Operation::Run(const Executor& executor) const {
  const absl::Span<const uint8_t> bytes = Room(x_);
  const TensorView x{widens() ? DataType::kUint8 : DataType::kFloat, spec_.shape, bytes};
  const Shape scale_shape = ScaleShape(spec_);
  const TensorView scale{DataType::kFloat, scale_shape, Room(scale_)};
  const TensorView zero_point{DataType::kUint8, scale_shape, Room(zero_point_)};
  QuantizationError error;
  if (spec_.kind == OperationKind::kQuantize) {
    const auto plan = PlanQuantize(
        {.x = x, .scale = scale, .zero_point = zero_point, .granularity = spec_.granularity});
    if (!plan.ok()) return plan.status();
    return Quantize(*plan, bytes, executor, Never, Room(y_), &error);
  }
  if (spec_.kind == OperationKind::kDequantize) {
    const auto plan = PlanDequantize(
        {.x = x, .scale = scale, .zero_point = zero_point, .granularity = spec_.granularity});
    if (!plan.ok()) return plan.status();
    return Dequantize(*plan, bytes, executor, Never, Room(y_));
  }
  const auto plan = PlanDynamicQuantize({.x = x, .granularity = spec_.granularity});
  if (!plan.ok()) return plan.status();
  const DynamicQuantizeOutput response = {Room(y_), Room(made_scale_), Room(made_zero_point_), {}};
  return DynamicQuantize(*plan, bytes, executor, Never, response, &error);
}

}  // namespace quantd::bench
