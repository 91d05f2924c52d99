#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "scan.h"

namespace quantd::cli {
namespace {

constexpr uint64_t kChunk = 1 << 16;  // elements; a multiple of what a byte can hold

template <typename T>
void Convert(const std::string& bytes, std::vector<double>* values) {
  for (size_t i = 0; i < values->size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    (*values)[i] = static_cast<double>(value);
  }
}

void ToDoubles(const ElementType& type, const std::string& bytes, std::vector<double>* values) {
  if (type.data_type == DataType::kInt32) return Convert<int32_t>(bytes, values);
  if (type.data_type != DataType::kUnspecified) {
    const std::vector<float> floats =
        ToFloats(type.data_type, static_cast<int64_t>(values->size()), bytes);
    std::copy(floats.begin(), floats.end(), values->begin());
    return;
  }
  if (type.family == Family::kFloat64) return Convert<double>(bytes, values);
  if (type.family == Family::kSigned) return Convert<int64_t>(bytes, values);
  if (type.bits == 64) return Convert<uint64_t>(bytes, values);
  if (type.bits == 32) return Convert<uint32_t>(bytes, values);
  return Convert<uint8_t>(bytes, values);
}

}  // namespace

bool ForEachValues(const TensorFile& file, const StoredTensor& tensor,
                   absl::FunctionRef<void(absl::Span<const double>)> visit) {
  if (tensor.type->family == Family::kOpaque) return false;
  const absl::Span<const uint8_t> all = file.Bytes(tensor);
  const auto elements = static_cast<uint64_t>(Product(tensor.shape));
  const int bits = tensor.type->bits;
  std::vector<double> values;
  for (uint64_t begin = 0; begin < elements; begin += kChunk) {
    const uint64_t count = std::min(kChunk, elements - begin);
    const auto part = all.subspan(begin * bits / 8, (count * bits + 7) / 8);
    std::string bytes(reinterpret_cast<const char*>(part.data()), part.size());
    if (tensor.big_endian && bits > 8) {
      for (size_t i = 0; i < bytes.size(); i += bits / 8) {
        std::reverse(bytes.begin() + i, bytes.begin() + i + bits / 8);
      }
    }
    values.resize(count);
    ToDoubles(*tensor.type, bytes, &values);
    visit(values);
  }
  return true;
}

Statistics Describe(const TensorFile& file, const StoredTensor& tensor, int bins,
                    Histogram* histogram) {
  Statistics result;
  bool first = true;
  ForEachValues(file, tensor, [&](absl::Span<const double> values) {
    for (const double value : values) {
      if (!std::isfinite(value)) {
        ++(std::isnan(value) ? result.nan : result.infinite);
        continue;
      }
      result.minimum = first ? value : std::min(result.minimum, value);
      result.maximum = first ? value : std::max(result.maximum, value);
      first = false;
      ++result.finite;
      // The running mean stays in range where a sum would overflow.
      result.mean += (value - result.mean) / static_cast<double>(result.finite);
    }
  });
  *histogram = Histogram(result.minimum, result.maximum, bins);
  double squares = 0;
  ForEachValues(file, tensor, [&](absl::Span<const double> values) {
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      histogram->Add(value);
      squares += (value - result.mean) * (value - result.mean);
    }
  });
  if (result.finite > 0) result.deviation = std::sqrt(squares / static_cast<double>(result.finite));
  return result;
}

}  // namespace quantd::cli
