#include "commands/statistics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace quantd::cli {
namespace {

constexpr int kBar = 40;
constexpr int64_t kChunk = 1 << 16;  // elements; a multiple of the number that fills whole bytes

}  // namespace

absl::StatusOr<Statistics> Describe(ForEachValues for_each, int64_t bins) {
  Statistics result;
  absl::Status status = for_each([&result](absl::Span<const double> values) {
    for (const double value : values) {
      if (!std::isfinite(value)) {
        ++(std::isnan(value) ? result.nan : result.infinite);
        continue;
      }
      const bool first = result.finite++ == 0;
      result.minimum = first ? value : std::min(result.minimum, value);
      result.maximum = first ? value : std::max(result.maximum, value);
      // The running mean stays in range even where a sum would overflow.
      result.mean += (value - result.mean) / static_cast<double>(result.finite);
    }
  });
  if (!status.ok()) return status;
  const double low = result.minimum, high = result.maximum;
  result.counts.assign(low == high ? 1 : std::max<int64_t>(bins, 1), 0);
  const auto last = static_cast<double>(result.counts.size() - 1);
  double squares = 0;
  status = for_each([&](absl::Span<const double> values) {
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      squares += (value - result.mean) * (value - result.mean);
      // Halves, so that a range as wide as double does not overflow.
      const double position =
          high == low ? 0 : (value / 2 - low / 2) / (high / 2 - low / 2) * (last + 1);
      ++result.counts[static_cast<size_t>(std::clamp(position, 0.0, last))];
    }
  });
  if (!status.ok()) return status;
  if (result.finite > 0) result.deviation = std::sqrt(squares / static_cast<double>(result.finite));
  return result;
}

absl::Status VisitStored(const TensorFile& file, const StoredTensor& tensor,
                         absl::FunctionRef<void(absl::Span<const double>)> visit) {
  const absl::Span<const uint8_t> all = file.Bytes(tensor);
  const int64_t bits = tensor.type->bits;
  int64_t elements = 1;
  for (const int64_t length : tensor.shape) elements *= length;
  std::vector<uint8_t> swapped;
  for (int64_t begin = 0; begin < elements; begin += kChunk) {
    const int64_t count = std::min(kChunk, elements - begin);
    absl::Span<const uint8_t> part = all.subspan(begin * bits / 8, (count * bits + 7) / 8);
    if (tensor.big_endian && bits > 8) {
      swapped.assign(part.begin(), part.end());
      for (auto at = swapped.begin(); at != swapped.end(); at += bits / 8) {
        std::reverse(at, at + bits / 8);
      }
      part = swapped;
    }
    visit(ToDoubles(*tensor.type, count, part));
  }
  return absl::OkStatus();
}

std::string Statistics::HistogramText() const {
  const uint64_t most = std::max<uint64_t>(1, *std::max_element(counts.begin(), counts.end()));
  const auto bins = static_cast<double>(counts.size());
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double edge = minimum + (maximum / bins - minimum / bins) * static_cast<double>(i);
    const double share = static_cast<double>(counts[i]) / static_cast<double>(most);
    std::string bar(static_cast<size_t>(std::lround(share * kBar)), '#');
    if (bar.empty() && counts[i] > 0) bar.push_back('.');
    absl::StrAppendFormat(&text, "    %12.5g |%-*s %d\n", edge, kBar, bar, counts[i]);
  }
  absl::StrAppendFormat(&text, "    %12.5g\n", maximum);
  return text;
}

Json Statistics::HistogramJson() const {
  return {{"min", NumberJson(minimum)}, {"max", NumberJson(maximum)}, {"counts", counts}};
}

}  // namespace quantd::cli
