#include "linear/given_scales.h"

#include <algorithm>
#include <vector>

#include "kernels/read_elements.h"
#include "linear/windows.h"
#include "pool/parts.h"
#include "walk/block_walk.h"

namespace quantd {
namespace {

// Calls read(first, size, at) for the scales of a part: all at once, or one per element.
template <typename Read>
void ReadPart(const BlockLayout& layout, const GivenPart& given, const Read& read) {
  const Part& part = given.part;
  if (!given.each) return read(part.first_scale, part.scales, size_t{0});
  BlockWalk walk(layout);
  walk.Seek(part.begin);
  for (int64_t i = 0; i < part.elements(); ++i) {
    read(static_cast<size_t>(walk.Next(1).scale), size_t{1}, static_cast<size_t>(i));
  }
}

// Cuts elements [begin, end) into parts with few scales each.
struct Cutter {
  const BlockLayout& layout;
  const BlockLayout& each;
  const PartLimits& limits;
  ColumnReader& reader;
  ErrorSums* sums;
  PartBody body;

  absl::Status Run(int64_t begin, int64_t end) const {
    const Part part = PartOf(layout, begin, end);
    if (part.scales <= static_cast<size_t>(2 * limits.scales)) {
      return body({part, &layout, false}, reader, nullptr, sums);
    }
    const auto size = static_cast<size_t>(end - begin);
    if (end - begin <= kGroup) {
      const Part own = {begin, end, static_cast<size_t>(begin), size};
      return body({own, &each, true}, reader, nullptr, sums);
    }
    const int64_t middle = begin + (end - begin) / (2 * kGroup) * kGroup;
    const int64_t cut = std::max(middle, begin + kGroup);
    const absl::Status status = Run(begin, cut);
    return status.ok() ? Run(cut, end) : status;
  }
};

}  // namespace

ColumnReader::Value* ColumnReader::Room(size_t size, size_t column) {
  if (sizes_[column] < size) {
    columns_[column] = std::make_unique_for_overwrite<Value[]>(size);
    sizes_[column] = size;
  }
  return columns_[column].get();
}

float* ColumnReader::OwnFloats(const ScaleOperand& operand, const GivenPart& part, size_t column) {
  auto* const to = &Room(part.part.scales, column)->real;
  ReadPart(layout_, part, [&](size_t first, size_t size, size_t at) {
    ReadFloats(operand.type, operand.bytes.data(), first, size, to + at);
  });
  return to;
}

const float* ColumnReader::Floats(const ScaleOperand& operand, const GivenPart& part,
                                  size_t column) {
  if (operand.empty()) return nullptr;
  const float* const in_place = FloatsInPlace(operand.type, operand.bytes.data());
  if (in_place != nullptr && !part.each) return in_place + part.part.first_scale;
  return OwnFloats(operand, part, column);
}

const int32_t* ColumnReader::Integers(const ScaleOperand& operand, const GivenPart& part,
                                      size_t column) {
  if (operand.empty()) return nullptr;
  auto* const to = &Room(part.part.scales, column)->integer;
  ReadPart(layout_, part, [&](size_t first, size_t size, size_t at) {
    ReadIntegers(operand.type, operand.bytes.data(), first, size, to + at);
  });
  return to;
}

absl::Status ForEachGivenPart(const BlockLayout& layout, int64_t begin, int64_t end,
                              Workers workers, ErrorSums* sums, PartBody body,
                              const PartLimits& limits) {
  if (begin == end) return absl::OkStatus();
  const bool shares = ElementsWithoutSharedScales(layout) > limits.elements;
  const Part all = PartOf(layout, begin, end);
  const auto scales = static_cast<int64_t>(all.scales);
  if (scales <= (shares ? limits.shared_scales : limits.few_scales)) {
    ColumnReader reader(layout);
    return body({all, &layout, false}, reader, workers, sums);
  }
  const int64_t fit = std::max<int64_t>(all.elements() / scales, 1) * limits.scales;
  const int64_t step = std::max(std::min(fit, limits.elements) / kGroup * kGroup, kGroup);
  BlockLayout each;
  each.dimensions.push_back({end, 1, 1});
  each.scale_count = end;
  return RunParts(static_cast<size_t>((all.elements() - 1) / step + 1), workers, sums, [&] {
    return [&, reader = ColumnReader(layout)](size_t index, ErrorSums* part_sums) mutable {
      const int64_t first = begin + static_cast<int64_t>(index) * step;
      const Cutter cutter{layout, each, limits, reader, part_sums, body};
      return cutter.Run(first, std::min(first + step, end));
    };
  });
}

}  // namespace quantd
