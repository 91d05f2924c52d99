// Tensors for tests: a view together with its bytes.
#ifndef QUANTD_TESTS_CORE_TENSORS_H_
#define QUANTD_TESTS_CORE_TENSORS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "quantd/field_error.h"
#include "quantd/parameters.h"
#include "quantd/values.h"
#include "types/codes.h"

namespace quantd {

// The bytes live as long as the program, so that a view of a temporary is safe.
class Tensor {
 public:
  Tensor(DataType type, Shape shape, std::vector<uint8_t> bytes)
      : bytes_(Keep(std::move(bytes))), view_{type, std::move(shape), bytes_} {}

  operator const TensorView&() const { return view_; }  // NOLINT: meant to be implicit
  const TensorView& view() const { return view_; }
  absl::Span<const uint8_t> bytes() const { return bytes_; }

 private:
  static absl::Span<const uint8_t> Keep(std::vector<uint8_t> bytes) {
    static std::deque<std::vector<uint8_t>> kept;
    kept.push_back(std::move(bytes));
    return kept.back();
  }

  absl::Span<const uint8_t> bytes_;
  TensorView view_;
};

// A copy of bytes whose address has the remainder `misalignment`. An allocation ends behind its
// last byte, so that a read past it is found.
class Misaligned {
 public:
  Misaligned(absl::Span<const uint8_t> bytes, size_t misalignment)
      : misalignment_(misalignment), block_(misalignment + bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), block_.begin() + static_cast<ptrdiff_t>(misalignment));
  }
  absl::Span<const uint8_t> bytes() const {
    return absl::MakeConstSpan(block_).subspan(misalignment_);
  }

 private:
  const size_t misalignment_;
  std::vector<uint8_t> block_;
};

// A tensor of codes (stored bits).
inline Tensor Codes(DataType type, Shape shape, const std::vector<uint32_t>& codes) {
  std::vector<uint8_t> bytes(ByteSize(type, static_cast<int64_t>(codes.size())));
  for (size_t i = 0; i < codes.size(); ++i) {
    StoreCode(type, bytes.data(), static_cast<int64_t>(i), codes[i]);
  }
  return Tensor(type, std::move(shape), std::move(bytes));
}

// A tensor of values that its type can represent.
inline Tensor Floats(DataType type, Shape shape, const std::vector<float>& values) {
  return Tensor(type, std::move(shape), PackFloats(type, values, "test").value());
}
inline Tensor Floats(Shape shape, const std::vector<float>& values) {
  return Floats(DataType::kFloat, std::move(shape), values);
}
inline Tensor Integers(DataType type, Shape shape, const std::vector<int64_t>& values) {
  return Tensor(type, std::move(shape), PackIntegers(type, values, "test").value());
}

// A tensor of zero bytes.
inline Tensor Zeros(DataType type, Shape shape) {
  const int64_t elements = ElementCount(shape, "test").value();
  return Tensor(type, std::move(shape), std::vector<uint8_t>(ByteSize(type, elements)));
}

// What an error must name: its field, and the numbers in its text. "OK" if there is no error.
inline std::string FieldAndNumbers(const absl::Status& status) {
  if (status.ok()) return "OK";
  std::string found = ErrorField(status);
  for (absl::string_view word : absl::StrSplit(status.message(), absl::ByAnyChar(" [](),:"))) {
    const absl::string_view digits = absl::StripPrefix(word, "-");
    const bool is_number = !digits.empty() && absl::ascii_isdigit(digits[0]);
    if (is_number || digits == "nan" || digits == "inf") absl::StrAppend(&found, " ", word);
  }
  return found;
}

// "field: message" of an error, "OK" if there is none: both in one comparison.
inline std::string ErrorText(const absl::Status& status) {
  if (status.ok()) return "OK";
  return ErrorField(status) + ": " + std::string(status.message());
}

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_TENSORS_H_
