#include "quantd/dynamic_quantize.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "execute/quantize_tiles.h"
#include "execute/ranges.h"
#include "reference/elements.h"
#include "reference/scale_rules.h"

namespace quantd {
namespace {

// Scales a task makes; a multiple of 4, so that tasks share no byte of packed zero points.
constexpr size_t kScalesPerTask = 4096;

// Two entries a scale: first its range, then what is made of it.
struct Scales {
  explicit Scales(size_t count) : size(count), values(2 * count, 0.0f) {}

  float* min() { return values.data(); }
  float* max() { return min() + size; }
  reference::Range range(size_t i) { return {min()[i], max()[i]}; }
  float* scale() { return min(); }
  float* zero_point() { return max(); }

  const size_t size;
  absl::InlinedVector<float, 16> values;
};

// As reference::StoreCode, for types of whole bytes and without looking the type up.
void StoreWhole(int bits, uint8_t* to, size_t index, uint32_t code) {
  if (bits == 32) {
    std::memcpy(to + 4 * index, &code, 4);
  } else if (bits == 16) {
    const auto narrow = static_cast<uint16_t>(code);
    std::memcpy(to + 2 * index, &narrow, 2);
  } else {
    to[index] = static_cast<uint8_t>(code);
  }
}

// From the ranges: scales and zero points, for the second pass and for the answer.
absl::Status MakeScales(const DynamicQuantizePlan& plan, const Executor& executor, Scales& scales,
                        const DynamicQuantizeOutput& output) {
  reference::ScaleMaker maker(plan);
  if (plan.has_tensor_scale) {
    reference::Range tensor;
    for (size_t i = 0; i < scales.size; ++i) {
      tensor.Include(scales.min()[i]);
      tensor.Include(scales.max()[i]);
    }
    const reference::ScaleFault fault = maker.SetTensorScale(tensor);
    if (fault != reference::ScaleFault::kNone) return maker.Error(-1, tensor, fault);
    const float tensor_scale = maker.tensor_scale();
    std::memcpy(output.tensor_scale.data(), &tensor_scale, sizeof(tensor_scale));
  }
  std::fill(output.zero_point.begin(), output.zero_point.end(), uint8_t{0});
  const int scale_bits = Info(plan.scale_type).bits;
  const int zero_point_bits = Info(plan.output_type).bits;
  std::atomic<size_t> first_fault{scales.size};
  executor.ParallelFor((scales.size + kScalesPerTask - 1) / kScalesPerTask, [&](size_t task) {
    const size_t end = std::min(scales.size, (task + 1) * kScalesPerTask);
    for (size_t i = task * kScalesPerTask; i < end; ++i) {
      const reference::BlockScale made = maker.Make(scales.range(i));
      if (made.fault != reference::ScaleFault::kNone) {
        size_t first = first_fault.load();
        while (i < first && !first_fault.compare_exchange_weak(first, i)) {
        }
        return;  // and leaves the range for the message
      }
      scales.scale()[i] = made.scale;
      scales.zero_point()[i] = static_cast<float>(made.zero_point);
      StoreWhole(scale_bits, output.scale.data(), i, made.code);
      if (!plan.has_zero_point) continue;
      const auto zero_point = static_cast<uint32_t>(made.zero_point);
      if (zero_point_bits >= 8) {
        StoreWhole(zero_point_bits, output.zero_point.data(), i, zero_point);
      } else {
        reference::StoreCode(plan.output_type, output.zero_point.data(), static_cast<int64_t>(i),
                             zero_point);
      }
    }
  });
  const size_t index = first_fault.load();
  if (index == scales.size) return absl::OkStatus();
  const reference::Range range = scales.range(index);
  return maker.Error(static_cast<int64_t>(index), range, maker.Make(range).fault);
}

// As PlanQuantize chooses for scales that arrive.
Quotient ChooseQuotient(const DynamicQuantizePlan& plan, Scales& scales) {
  const DataTypeInfo& output = Info(plan.output_type);
  if (output.kind != DataTypeKind::kInteger || output.bits > 8) return Quotient::kDivide;
  const bool in_range = std::all_of(scales.scale(), scales.scale() + scales.size, [](float scale) {
    return scale >= 0x1p-100f && scale <= 0x1p76f;
  });
  return in_range ? Quotient::kReciprocal : Quotient::kDivide;
}

}  // namespace

absl::Status DynamicQuantize(const DynamicQuantizePlan& plan, const ByteChunks& x,
                             const Executor& executor, Interrupted interrupted,
                             const DynamicQuantizeOutput& output, QuantizationError* error) {
  Scales scales(static_cast<size_t>(plan.layout.scale_count));
  if (plan.elements > 0) {
    const absl::Status status =
        FindRanges(plan, x, executor, interrupted, scales.min(), scales.max());
    if (!status.ok()) return status;
  }
  const absl::Status made = MakeScales(plan, executor, scales, output);
  if (!made.ok()) return made;

  const QuantizeWork work{
      .input_type = plan.input_type,
      .output_type = plan.output_type,
      .elements = plan.elements,
      .input_bytes = plan.input_bytes,
      .layout = &plan.layout,
      .quotient = ChooseQuotient(plan, scales),
      .order = ZeroPointOrder::kAfterRounding,
      .scale = scales.scale(),
      .dequantize_scale = scales.scale(),
      .zero_point = plan.has_zero_point ? scales.zero_point() : nullptr,
      .minimum = plan.minimum,
      .maximum = plan.maximum,
      .saturate = plan.saturate,
  };
  ErrorSums sums;
  const bool report = plan.report_error && error != nullptr;
  const absl::Status status =
      QuantizeTiles(work, x, executor, interrupted, output.y, report ? &sums : nullptr);
  if (status.ok() && report) *error = sums.Finish();
  return status;
}

}  // namespace quantd
