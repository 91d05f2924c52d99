#include "layouts_oracle_bytes.h"
#include "rules/ggml.h"
#include "rules/layouts.h"

namespace quantd::oracle {
namespace {

// Product of a code's value and a scale, in the type T.
float Scaled(DataType type, float q, float scale) { return RoundTo(type, q * scale); }

float DecodeOne(const WeightPlan& plan, const WeightFacts& facts,
                const std::vector<ByteVector>& parts, size_t r, size_t c) {
  const DataType type = plan.type;
  const auto columns = static_cast<size_t>(plan.columns);
  const size_t i = r * columns + c;
  const auto nibble = [&](bool high_first) {
    return parts[0][i / 2] >> ((i % 2 == 0) == high_first ? 4 : 0) & 15;
  };
  const auto e4m3 = [&] { return DecodeFormat(kE4M3FnFormat, parts[0][i]); };
  const auto int8 = [&] { return static_cast<float>(static_cast<int8_t>(parts[0][i])); };
  const size_t tile = r / 128 * ((columns + 127) / 128) + c / 128;
  const auto group = static_cast<size_t>(Info(plan.layout).columns_of);
  switch (plan.layout) {
    case Layout::kFp8Tiles:
      return e4m3() * Get<float>(parts[1], tile);
    case Layout::kFp8Block:
      return Scaled(type, e4m3(), GetFloat(type, parts[1], tile));
    case Layout::kFp8:
      return Scaled(type, e4m3(), GetFloat(type, parts[1], r));
    case Layout::kFp8Tensor:
      return Scaled(type, e4m3(), GetFloat(type, parts[1], 0));
    case Layout::kInt8:
      return Scaled(type, int8(), GetFloat(type, parts[1], r));
    case Layout::kInt8Tensor:
      return Scaled(type, int8(), GetFloat(type, parts[1], 0));
    case Layout::kInt4G128:
    case Layout::kInt4G32:
    case Layout::kInt4G128Asym:
    case Layout::kInt4G32Asym: {
      const auto q = static_cast<int>(Get<uint32_t>(parts[0], i / 8) >> (4 * (c % 8)) & 15) - 8;
      int zero_point = 0;
      if (IsAsymmetric(plan.layout)) {
        const auto word = Get<uint32_t>(parts[2], r / 8 * (columns / group) + c / group);
        zero_point = static_cast<int>(word >> (4 * (r % 8)) & 15) - 8;
      }
      return Scaled(type, static_cast<float>(q - zero_point), GetFloat(type, parts[1], i / group));
    }
    case Layout::kNvfp4: {
      const float divisor = rules::GroupDivisor(parts[1][i / 16], Get<float>(parts[2], 0));
      const float q = DecodeFormat(kE2M1Format, static_cast<uint32_t>(nibble(false)));
      return Scaled(DataType::kBfloat16, q, divisor);
    }
    case Layout::kMxfp4: {
      const float q = DecodeFormat(kE2M1Format, static_cast<uint32_t>(nibble(false)));
      return Scaled(DataType::kBfloat16, q, rules::PowerOfCode(parts[1][i / 32]));
    }
    case Layout::kBnbInt8:
      return int8() * Get<float>(parts[1], r) * rules::kRowUnit;
    default: {  // bitsandbytes' 4 bits
      const size_t block = i / rules::kBnbBlock;
      const bool nested = NeedsFacts(plan.layout);
      const float absmax = !nested ? Get<float>(parts[1], block)
                                   : Get<float>(parts[4], parts[1][block]) *
                                             Get<float>(parts[3], block / rules::kBnbNestedBlock) +
                                         facts.offset;
      std::array<float, 16> map;
      for (size_t code = 0; code < 16; ++code) map[code] = Get<float>(parts[2], code);
      if (!IsNf4(plan.layout)) rules::SetFp4Signs(map);
      return Scaled(type, map[static_cast<size_t>(nibble(true))], absmax);
    }
  }
}

}  // namespace

ByteVector DecodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                        const std::vector<ByteVector>& parts, DataType output) {
  std::vector<float> values;
  const LayoutInfo& info = Info(plan.layout);
  if (info.family == LayoutFamily::kGguf) {
    if (info.columns_of == 1) {
      const DataType stored = plan.layout == Layout::kGgufF32   ? DataType::kFloat
                              : plan.layout == Layout::kGgufF16 ? DataType::kFloat16
                                                                : DataType::kBfloat16;
      return FromFloats(output, ToFloats(stored, parts[0]));
    }
    values.resize(static_cast<size_t>(plan.elements));
    const auto block = static_cast<size_t>(info.columns_of);
    for (size_t i = 0; i < values.size(); i += block) {
      rules::GgmlDecoderOf(plan.layout)(
          parts[0].data() + i / block * static_cast<size_t>(info.block_bytes), &values[i]);
    }
    return FromFloats(output, values);
  }
  for (size_t r = 0; r < static_cast<size_t>(plan.rows); ++r) {
    for (size_t c = 0; c < static_cast<size_t>(plan.columns); ++c) {
      values.push_back(DecodeOne(plan, facts, parts, r, c));
    }
  }
  return FromFloats(output, values);
}

}  // namespace quantd::oracle
