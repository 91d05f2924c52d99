// Each rule is a few loops over a tile of scales; the loops are kernels, or plain ones that
// compilers vectorise: first the scale according to the rule, rounded to the scale type by the
// kernels that convert and quantize elements, then the zero point. This takes 1 to 3 ns per scale;
// one by one takes 9 to 25, which was half of the time with blocks of 32.
#include "dynamic/make_scales.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/find_kernel.h"
#include "kernels/kernel_table.h"

namespace quantd {
namespace {

// Scales per task, and per tile. Multiples of 4, so that tasks share no byte of packed zero
// points.
constexpr size_t kScalesPerTask = 4096;
constexpr size_t kTile = 512;

using Floats = std::array<float, kTile>;
using Bytes = std::array<uint8_t, kTile>;

uint8_t* BytesOf(float* floats) { return reinterpret_cast<uint8_t*>(floats); }

// A block with only zeros has scale 1 (in the scale type) and zero point 0.
template <ScaleRule kRule>
void Unrounded(const rules::ScaleMaker& maker, const float* min, const float* max, size_t size,
               float* scale) {
  for (size_t i = 0; i < size; ++i) {
    const rules::Range range{min[i], max[i]};
    const float wanted = maker.Unrounded<kRule>(range);
    scale[i] = range.largest_magnitude() == 0 ? 1.0f : wanted;
  }
}

// kPowerOfTwo only needs the exponent. That of a denormal is below all that matter.
void PowersOfTwo(const rules::ScaleMaker& maker, const float* min, const float* max, size_t size,
                 uint8_t* codes, float* scale) {
  std::array<int32_t, kTile> code;
  for (size_t i = 0; i < size; ++i) {
    const float largest = rules::Range{min[i], max[i]}.largest_magnitude();
    const int made = maker.PowerOfTwoCode(std::bit_cast<int32_t>(largest) / (1 << 23) - 127);
    code[i] = largest == 0 ? 127 : made;
  }
  for (size_t i = 0; i < size; ++i) codes[i] = static_cast<uint8_t>(code[i]);
  for (size_t i = 0; i < size; ++i) {
    const int32_t normal = code[i] * (1 << 23);
    scale[i] = std::bit_cast<float>(code[i] == 0 ? 0x00400000 : normal);
  }
}

class Maker {
 public:
  Maker(const DynamicQuantizePlan& plan, const rules::ScaleMaker& maker,
        const DynamicQuantizeOutput& output)
      : plan_(plan), maker_(maker), output_(output), kernels_(Kernels()) {}

  // Replaces the ranges of entries [begin, begin + size) by their scales; the first of them belongs
  // to scale `number`. Returns the magnitudes; if one under- or overflows, the ranges are kept.
  Magnitudes Make(DynamicScales& scales, size_t begin, size_t size, size_t number) const {
    float* min = scales.min() + begin;
    float* max = scales.max() + begin;
    Floats scale;
    Scales(min, max, size, output_.scale.data() + number * scale_bits_ / 8, scale.data());
    const Magnitudes made = kernels_.magnitudes(scale.data(), size);
    if (!IsDivisor(made)) return made;
    if (plan_.has_zero_point) {
      float* zero_point = scales.zero_point() + begin;
      kernels_.range_zero_points(min, max, scale.data(), size, static_cast<float>(plan_.minimum),
                                 static_cast<float>(plan_.maximum), zero_point);
      StoreZeroPoints(zero_point, number, size);
    }
    std::copy_n(scale.data(), size, scales.scale() + begin);
    return made;
  }

 private:
  // Writes the codes to `codes` and their values to `scale`.
  void Scales(const float* min, const float* max, size_t size, uint8_t* codes, float* scale) const {
    switch (plan_.rule) {
      case ScaleRule::kPowerOfTwo:
        return PowersOfTwo(maker_, min, max, size, codes, scale);
      case ScaleRule::kTwoLevel:
        Unrounded<ScaleRule::kTwoLevel>(maker_, min, max, size, scale);
        break;
      case ScaleRule::kSymmetric:
        Unrounded<ScaleRule::kSymmetric>(maker_, min, max, size, scale);
        break;
      case ScaleRule::kRange:
        kernels_.range_scales(min, max, size, static_cast<float>(plan_.maximum - plan_.minimum),
                              scale);
        break;
    }
    if (plan_.scale_type == DataType::kFloat) {
      std::memcpy(codes, scale, size * sizeof(float));
    } else if (plan_.scale_type == DataType::kFloat8E4M3Fn) {
      RoundToFloat8(size, codes, scale);
    } else {
      FromFloat(kernels_, plan_.scale_type)(BytesOf(scale), size, codes);
      ToFloat(kernels_, plan_.scale_type)(codes, size, BytesOf(scale));
    }
  }

  // Quantized with scale 1, and dequantized with the tensor's (1 if there is none).
  void RoundToFloat8(size_t size, uint8_t* codes, float* scale) const {
    const float one = 1;
    const float tensor_scale = maker_.tensor_scale();
    QuantizeTile to;
    to.x = BytesOf(scale);
    to.y = codes;
    to.size = size;
    to.scale = &one;
    to.saturate = plan_.rule == ScaleRule::kTwoLevel;
    FindQuantize(kernels_, Quotient::kDivide, ZeroPointOrder::kAfterRounding,
                 DataType::kFloat8E4M3Fn, ScaleMode::kRuns)(to);
    DequantizeTile from;
    from.x = codes;
    from.y = BytesOf(scale);
    from.size = size;
    from.scale = &tensor_scale;
    FindDequantize(kernels_, DataType::kFloat8E4M3Fn, ScaleMode::kRuns)(from);
  }

  void StoreZeroPoints(const float* zero_point, size_t begin, size_t size) const {
    uint8_t* to = output_.zero_point.data() + begin * zero_point_bits_ / 8;
    if (zero_point_bits_ == 16) {
      for (size_t i = 0; i < size; ++i) {
        const auto code = static_cast<uint16_t>(static_cast<int32_t>(zero_point[i]));
        std::memcpy(to + 2 * i, &code, sizeof(code));
      }
      return;
    }
    const ConvertTile pack = Pack(kernels_, zero_point_bits_);
    Bytes unpacked;
    uint8_t* codes = pack != nullptr ? unpacked.data() : to;
    for (size_t i = 0; i < size; ++i) {
      codes[i] = static_cast<uint8_t>(static_cast<int32_t>(zero_point[i]));
    }
    if (pack != nullptr) pack(codes, size, to);
  }

  const DynamicQuantizePlan& plan_;
  const rules::ScaleMaker& maker_;
  const DynamicQuantizeOutput& output_;
  const KernelTable& kernels_;
  const size_t scale_bits_ = static_cast<size_t>(Info(plan_.scale_type).bits);
  const int zero_point_bits_ = Info(plan_.output_type).bits;
};

// The index of the first of `size` scales that under- or overflows, whose ranges were kept.
size_t FirstFault(const rules::ScaleMaker& maker, DynamicScales& scales, size_t begin,
                  size_t size) {
  size_t i = 0;
  while (i + 1 < size && maker.Make(scales.range(begin + i)).fault == rules::ScaleFault::kNone) {
    ++i;
  }
  return begin + i;
}

}  // namespace

rules::ScaleMaker MakerOf(const DynamicQuantizePlan& plan) {
  return rules::ScaleMaker({.scale_rule = plan.rule,
                            .scale_type = plan.scale_type,
                            .output_type = plan.output_type,
                            .minimum = plan.minimum,
                            .maximum = plan.maximum});
}

absl::StatusOr<Magnitudes> MakeScales(const DynamicQuantizePlan& plan,
                                      const rules::ScaleMaker& maker, const Part& part,
                                      Workers workers, DynamicScales& scales,
                                      const DynamicQuantizeOutput& output) {
  const Maker tiles(plan, maker, output);
  const size_t tasks = (part.scales + kScalesPerTask - 1) / kScalesPerTask;
  std::vector<Magnitudes> magnitudes(tasks);
  std::atomic<size_t> first_fault{part.scales};
  ForEachTask(workers, tasks, [&](size_t task) {
    const size_t end = std::min(part.scales, (task + 1) * kScalesPerTask);
    for (size_t begin = task * kScalesPerTask; begin < end; begin += kTile) {
      const size_t size = std::min(kTile, end - begin);
      const Magnitudes made = tiles.Make(scales, begin, size, part.first_scale + begin);
      if (!IsDivisor(made)) {
        const size_t fault = FirstFault(maker, scales, begin, size);
        size_t first = first_fault.load();
        while (fault < first && !first_fault.compare_exchange_weak(first, fault)) {
        }
        return;  // the range is kept for the message
      }
      magnitudes[task].Include(made);
    }
  });
  const size_t fault = first_fault.load();
  if (fault < part.scales) {
    const rules::Range range = scales.range(fault);
    return maker.Error(static_cast<int64_t>(part.first_scale + fault), range,
                       maker.Make(range).fault);
  }
  Magnitudes all;
  for (const Magnitudes& some : magnitudes) all.Include(some);
  return all;
}

}  // namespace quantd
