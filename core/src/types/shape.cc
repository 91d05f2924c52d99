#include "quantd/shape.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"

namespace quantd {
namespace {

constexpr int64_t kElementLimit = int64_t{1} << 62;
constexpr size_t kMessageDimensions = 8;

}  // namespace

absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> shape, absl::string_view field) {
  if (shape.size() > static_cast<size_t>(kMaxRank)) {
    return FieldError(field, absl::StrCat(field, " has ", shape.size(), " dimensions, at most ",
                                          kMaxRank, " are supported"));
  }
  // The product skips zeros, so that values computed from the other dimensions of an empty tensor
  // can't overflow either.
  int64_t product = 1;
  bool empty = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t length = shape[i];
    if (length < 0) {
      return FieldError(
          field, absl::StrCat(field, " has length ", length, " in dimension ", i, " of shape ",
                              ShapeString(shape), ", lengths start at 0"));
    }
    if (length == 0) {
      empty = true;
    } else if (length > (kElementLimit - 1) / product) {
      const absl::string_view of = absl::EndsWith(field, "shape") ? " " : " of shape ";
      return FieldError(field,
                        absl::StrCat(field, of, ShapeString(shape), " has 2^62 elements or more"));
    } else {
      product *= length;
    }
  }
  return empty ? 0 : product;
}

uint64_t ByteSize(DataType type, int64_t elements) {
  const uint64_t count = static_cast<uint64_t>(elements);
  const uint64_t bits = static_cast<uint64_t>(Info(type).bits);
  if (bits >= 8) return count * (bits / 8);
  // Eight elements fill `bits` bytes.
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}

std::string ShapeString(absl::Span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size() && i < kMessageDimensions; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", shape[i]);
  }
  if (shape.size() > kMessageDimensions) {
    absl::StrAppend(&text, ", ... ", shape.size(), " dimensions");
  }
  return text + "]";
}

}  // namespace quantd
