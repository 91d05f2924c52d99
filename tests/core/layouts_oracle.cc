#include "layouts_oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "layouts/quant_state.h"
#include "layouts_oracle_bytes.h"
#include "rules/layouts.h"

namespace quantd::oracle {
namespace {

using rules::BlockRange;

int8_t Integer(float value, float low, float high) {
  return static_cast<int8_t>(std::nearbyint(std::clamp(value, low, high)));
}

// The numbers of a weight.
struct Matrix {
  const WeightPlan& plan;
  std::vector<float> x;
  size_t rows, columns;

  Matrix(const WeightPlan& of, const ByteVector& weight)
      : plan(of),
        x(ToFloats(of.type, weight)),
        rows(static_cast<size_t>(of.rows)),
        columns(static_cast<size_t>(of.columns)) {}

  float At(size_t row, size_t column) const { return x[row * columns + column]; }
  // The values of rows [r, r + height) and columns [c, c + width), cut at the edges.
  BlockRange RangeOf(size_t r, size_t height, size_t c, size_t width) const {
    BlockRange range;
    for (size_t i = r; i < std::min(r + height, rows); ++i) {
      for (size_t j = c; j < std::min(c + width, columns); ++j) range.Include(At(i, j));
    }
    return range;
  }
};

// int8, fp8, their -tensor and -block, fp8-tiles: one-byte codes and the scales of blocks.
std::vector<ByteVector> EncodeScaled(const Matrix& m, size_t height, size_t width) {
  const Layout layout = m.plan.layout;
  const DataType type = m.plan.type;
  const size_t across = (m.columns + width - 1) / width;
  std::vector<ByteVector> parts(2);
  std::vector<float> scales;
  for (size_t r = 0; r < m.rows; r += height) {
    for (size_t c = 0; c < m.columns; c += width) {
      const float largest = m.RangeOf(r, height, c, width).largest();
      if (layout == Layout::kFp8Tiles) {
        scales.push_back(rules::TileFactor(largest));
        Put(DataType::kFloat, rules::TileScale(scales.back()), parts[1]);
      } else {
        scales.push_back(rules::SymmetricScale(
            type, largest, IsInt8(layout) ? rules::kInt8Divisor : rules::kFp8Divisor));
        Put(type, scales.back(), parts[1]);
      }
    }
  }
  for (size_t r = 0; r < m.rows; ++r) {
    for (size_t c = 0; c < m.columns; ++c) {
      const float scale = scales[r / height * across + c / width];
      const float x = m.At(r, c);
      if (layout == Layout::kFp8Tiles) {
        parts[0].push_back(static_cast<uint8_t>(rules::FloatingCode8(x * scale)));
      } else if (IsInt8(layout)) {
        parts[0].push_back(
            static_cast<uint8_t>(Integer(rules::Quotient(type, x, scale), -128, 127)));
      } else {
        parts[0].push_back(
            static_cast<uint8_t>(rules::FloatingCode8(rules::Quotient(type, x, scale))));
      }
    }
  }
  return parts;
}

std::vector<ByteVector> EncodeInt4(const Matrix& m) {
  const DataType type = m.plan.type;
  const bool asymmetric = IsAsymmetric(m.plan.layout);
  const auto group = static_cast<size_t>(Info(m.plan.layout).columns_of);
  const size_t groups = m.columns / group;
  std::vector<uint32_t> packed(m.rows * m.columns / 8);
  std::vector<uint32_t> zeros((m.rows + 7) / 8 * groups);
  std::vector<ByteVector> parts(2);
  for (size_t r = 0; r < m.rows; ++r) {
    for (size_t k = 0; k < groups; ++k) {
      const BlockRange range = m.RangeOf(r, 1, k * group, group);
      float scale = rules::SymmetricScale(type, range.largest(), rules::kInt4Divisor);
      float zero_point = 0;
      if (asymmetric) {
        scale = rules::RangeScale(type, range);
        zero_point = rules::ZeroPoint(type, range, scale);
        scale = rules::ScaleOrEpsilon(type, scale);
        zeros[r / 8 * groups + k] |= static_cast<uint32_t>(zero_point + 8) << (4 * (r % 8));
      }
      Put(type, scale, parts[1]);
      for (size_t c = k * group; c < (k + 1) * group; ++c) {
        float y = rules::Quotient(type, m.At(r, c), scale);
        if (asymmetric) y = RoundTo(type, y + zero_point);
        packed[(r * m.columns + c) / 8] |= static_cast<uint32_t>(Integer(y, -8, 7) + 8)
                                           << (4 * (c % 8));
      }
    }
  }
  for (const uint32_t word : packed) PutBytes(word, parts[0]);
  if (asymmetric) {
    parts.emplace_back();
    for (const uint32_t word : zeros) PutBytes(word, parts.back());
  }
  parts.emplace_back();
  PutBytes(m.plan.rows, parts.back());
  PutBytes(m.plan.columns, parts.back());
  return parts;
}

// FLOAT4E2M1 of a value, ties to the even code; what rounds to 0 from below is code 8, but -0 is 0.
uint32_t FloatingCode4(float value) {
  return EncodeFormat(kE2M1Format, value == 0 ? 0.0f : value, /*saturate=*/true);
}

std::vector<ByteVector> EncodeFp4(const Matrix& m, const WeightFacts& facts) {
  const DataType type = m.plan.type;
  const bool nvidia = m.plan.layout == Layout::kNvfp4;
  const size_t group = nvidia ? 16 : 32;
  const float global = rules::GlobalScale(type, facts.largest);
  std::vector<ByteVector> parts(2);
  for (size_t r = 0; r < m.rows; ++r) {
    for (size_t k = 0; k < m.columns; k += group) {
      const float largest = m.RangeOf(r, 1, k, group).largest();
      std::function<float(float)> quotient;
      if (nvidia) {
        const uint32_t code = rules::GroupScaleCode(type, largest, global);
        parts[1].push_back(static_cast<uint8_t>(code));
        quotient = [=](float x) { return x / rules::GroupDivisor(code, global); };
      } else {
        const rules::MxScale scale = rules::MxScaleOf(type, largest);
        parts[1].push_back(scale.code);
        quotient = [=](float x) { return rules::Quotient(type, x, RoundTo(type, scale.divisor)); };
      }
      for (size_t c = k; c < k + group; c += 2) {
        const uint32_t low = FloatingCode4(quotient(m.At(r, c)));
        const uint32_t high = FloatingCode4(quotient(m.At(r, c + 1)));
        parts[0].push_back(static_cast<uint8_t>(low | high << 4));
      }
    }
  }
  if (nvidia) {
    parts.emplace_back();
    Put(DataType::kFloat, global, parts.back());
  }
  return parts;
}

// ---- gguf ---------------------------------------------------------------------------------------

constexpr size_t kBlock = rules::kGgufBlock;

void EncodeGgufBlock(Layout layout, const float* x, ByteVector& y) {
  const bool five = layout == Layout::kGgufQ5_0 || layout == Layout::kGgufQ5_1;
  const bool extreme = layout == Layout::kGgufQ4_0 || layout == Layout::kGgufQ5_0;
  const float steps = five ? 31 : 15;
  const float middle = five ? 16 : 8;
  uint32_t codes[kBlock];
  if (layout == Layout::kGgufQ8_0) {
    const float d = std::fabs(rules::ExtremeOf(x)) / 127;
    Put(DataType::kFloat16, d, y);
    for (size_t i = 0; i < kBlock; ++i) {
      y.push_back(static_cast<uint8_t>(rules::RoundedAway(x[i] * rules::Reciprocal(d))));
    }
    return;
  }
  if (layout == Layout::kGgufMxfp4) {
    const uint8_t exponent = rules::GgufExponent(std::fabs(rules::ExtremeOf(x)));
    y.push_back(exponent);
    for (size_t i = 0; i < kBlock; ++i) {
      codes[i] = rules::GgufNearest(x[i], rules::GgufUnit(exponent));
    }
  } else if (extreme) {
    const float d = rules::ExtremeOf(x) / -middle;
    Put(DataType::kFloat16, d, y);
    for (size_t i = 0; i < kBlock; ++i) {
      codes[i] = rules::Truncated(x[i] * rules::Reciprocal(d) + (middle + 0.5f));
    }
  } else {
    const float least = rules::SmallestOf(x);
    const float d = (rules::LargestOf(x) - least) / steps;
    Put(DataType::kFloat16, d, y);
    Put(DataType::kFloat16, least, y);
    for (size_t i = 0; i < kBlock; ++i) {
      codes[i] = rules::Truncated((x[i] - least) * rules::Reciprocal(d) + 0.5f);
    }
  }
  uint32_t fifth = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    codes[i] = std::min(codes[i], static_cast<uint32_t>(steps));
    fifth |= codes[i] >> 4 << i;
  }
  if (five) PutBytes(fifth, y);
  for (size_t i = 0; i < kBlock / 2; ++i) {
    y.push_back(static_cast<uint8_t>((codes[i] & 15) | (codes[i + kBlock / 2] & 15) << 4));
  }
}

std::vector<ByteVector> EncodeGguf(const Matrix& m) {
  std::vector<ByteVector> parts(1);
  const Layout layout = m.plan.layout;
  if (Info(layout).columns_of == 1) {
    const DataType type = layout == Layout::kGgufF32   ? DataType::kFloat
                          : layout == Layout::kGgufF16 ? DataType::kFloat16
                                                       : DataType::kBfloat16;
    for (const float x : m.x) Put(type, x, parts[0]);
    return parts;
  }
  for (size_t i = 0; i < m.x.size(); i += kBlock) EncodeGgufBlock(layout, &m.x[i], parts[0]);
  return parts;
}

// ---- bitsandbytes -------------------------------------------------------------------------------

float AbsmaxOf(const std::vector<float>& x, size_t begin) {
  const size_t end = std::min(begin + rules::kBnbBlock, x.size());
  float absmax = 0;
  for (size_t i = begin; i < end; ++i) absmax = std::max(absmax, std::fabs(x[i]));
  return end - begin < rules::kBnbBlock ? rules::LastBlockAbsmax(absmax) : absmax;
}

std::vector<ByteVector> EncodeBnb4(const Matrix& m, const WeightFacts& facts) {
  const rules::Table4& table = IsNf4(m.plan.layout) ? rules::kNf4Table : rules::kFp4Table;
  const std::vector<float>& x = m.x;
  const bool nested = NeedsFacts(m.plan.layout);
  std::vector<float> absmax;
  std::vector<uint32_t> codes;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % rules::kBnbBlock == 0) absmax.push_back(AbsmaxOf(x, i));
    const bool whole = i / rules::kBnbBlock < x.size() / rules::kBnbBlock;
    codes.push_back(table.Code(whole ? rules::WholeBlockValue(x[i], absmax.back())
                                     : rules::LastBlockValue(x[i], absmax.back())));
  }
  if (codes.size() % 2 != 0) codes.push_back(table.Code(0));
  ByteVector packed, scales, map, nested_scales, nested_map, state;
  for (size_t i = 0; i < codes.size(); i += 2) {
    packed.push_back(static_cast<uint8_t>(codes[i] << 4 | codes[i + 1]));
  }
  for (int i = 0; i < 16; ++i) Put(DataType::kFloat, table.values[i], map);
  const std::array<float, 256> values = rules::MakeNestedMap();
  for (size_t begin = 0; begin < absmax.size(); begin += rules::kBnbNestedBlock) {
    const size_t end = std::min(begin + rules::kBnbNestedBlock, absmax.size());
    float largest = 0;
    for (size_t i = begin; i < end; ++i) {
      if (!nested) {
        Put(DataType::kFloat, absmax[i], scales);
      } else {
        largest = std::max(largest, std::fabs(absmax[i] - facts.offset));
      }
    }
    if (!nested) continue;
    for (size_t i = begin; i < end; ++i) {
      scales.push_back(
          largest == 0
              ? 0
              : rules::NestedCode(values, rules::NestedStep(absmax[i] - facts.offset, largest)));
    }
    Put(DataType::kFloat, largest, nested_scales);
  }
  for (const float value : values) Put(DataType::kFloat, value, nested_map);
  for (const char c : QuantStateText(m.plan, facts)) state.push_back(static_cast<uint8_t>(c));
  if (nested) return {packed, scales, map, nested_scales, nested_map, state};
  return {packed, scales, map, state};
}

std::vector<ByteVector> EncodeBnbInt8(const Matrix& m) {
  std::vector<ByteVector> parts(3);
  for (size_t r = 0; r < m.rows; ++r) {
    float largest = 0;
    for (size_t c = 0; c < m.columns; ++c) {
      largest = std::max(largest, std::fabs(RoundTo(DataType::kFloat16, m.At(r, c))));
    }
    Put(DataType::kFloat, largest, parts[1]);
    for (size_t c = 0; c < m.columns; ++c) {
      const float x = RoundTo(DataType::kFloat16, m.At(r, c));
      parts[0].push_back(
          static_cast<uint8_t>(static_cast<int8_t>(std::nearbyint(x * rules::RowFactor(largest)))));
    }
  }
  parts[2].push_back(0);
  return parts;
}

}  // namespace

std::vector<float> ToFloats(DataType type, const ByteVector& bytes) {
  std::vector<float> values(bytes.size() / WidthOf(type));
  for (size_t i = 0; i < values.size(); ++i) values[i] = GetFloat(type, bytes, i);
  return values;
}

ByteVector FromFloats(DataType type, const std::vector<float>& values) {
  ByteVector bytes;
  for (const float value : values) Put(type, value, bytes);
  return bytes;
}

WeightFacts MeasureWeight(const WeightPlan& plan, const ByteVector& weight) {
  const Matrix m(plan, weight);
  WeightFacts facts;
  facts.largest = m.RangeOf(0, m.rows, 0, m.columns).largest();
  double sum = 0;
  int64_t blocks = 0;
  for (size_t i = 0; i < m.x.size(); i += rules::kBnbBlock, ++blocks) {
    sum += static_cast<double>(AbsmaxOf(m.x, i));
  }
  facts.offset = static_cast<float>(sum / static_cast<double>(blocks));
  return facts;
}

std::vector<ByteVector> EncodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                                     const ByteVector& weight) {
  const Matrix m(plan, weight);
  switch (plan.layout) {
    case Layout::kFp8Tiles:
    case Layout::kFp8Block:
      return EncodeScaled(m, 128, 128);
    case Layout::kInt8:
    case Layout::kFp8:
      return EncodeScaled(m, 1, m.columns);
    case Layout::kInt8Tensor:
    case Layout::kFp8Tensor:
      return EncodeScaled(m, m.rows, m.columns);
    case Layout::kInt4G128:
    case Layout::kInt4G32:
    case Layout::kInt4G128Asym:
    case Layout::kInt4G32Asym:
      return EncodeInt4(m);
    case Layout::kNvfp4:
    case Layout::kMxfp4:
      return EncodeFp4(m, facts);
    case Layout::kBnbNf4:
    case Layout::kBnbNf4Double:
    case Layout::kBnbFp4:
    case Layout::kBnbFp4Double:
      return EncodeBnb4(m, facts);
    case Layout::kBnbInt8:
      return EncodeBnbInt8(m);
    default:
      return EncodeGguf(m);
  }
}

}  // namespace quantd::oracle
