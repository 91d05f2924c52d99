#include "embeddings/vectors.h"

#include <algorithm>

#include "rules/embeddings.h"

namespace quantd {

Vectors::Vectors(const QuantizeEmbeddingsPlan& plan, absl::Span<const uint8_t> x)
    : plan_(plan), kernels_(Kernels()), x_(x), to_float_(ToFloat(kernels_, plan.input_type)) {}

const uint8_t* Vectors::Given(int64_t begin, size_t size) {
  const int64_t first = row_begin_ + begin;
  // Most rows are one piece, which is used for its length and again for its codes.
  if (first == given_begin_ && size <= given_size_) return given_;
  given_begin_ = first;
  given_size_ = size;
  const size_t width = static_cast<size_t>(Info(plan_.input_type).bits / 8);
  const uint8_t* piece = x_.data() + static_cast<size_t>(first) * width;
  if (to_float_ != nullptr) {
    to_float_(piece, size, floats_.data());
    piece = floats_.data();
  }
  given_ = piece;
  return given_;
}

const uint8_t* Vectors::Used(int64_t begin, size_t size) {
  const uint8_t* const given = Given(begin, size);
  if (divisor_ == 0) return given;
  kernels_.normalize(given, size, divisor_, normalized_.data());
  return normalized_.data();
}

template <typename Values>
double Vectors::LengthOf(Values values) {
  rules::Squares squares;
  for (int64_t begin = 0; begin < plan_.dimensions; begin += kPiece) {
    const auto size = static_cast<size_t>(std::min(plan_.dimensions - begin, kPiece));
    kernels_.add_squares(values(begin, size), size, squares.sums);
  }
  return squares.Length();
}

void Vectors::Seek(int64_t row, bool lengths) {
  row_begin_ = row * plan_.width;
  divisor_ = 0;
  if (!lengths) return;
  length_ = LengthOf([this](int64_t begin, size_t size) { return Given(begin, size); });
  if (!plan_.normalize || !rules::IsLength(length_)) return;
  divisor_ = length_;
  if (plan_.recipe != EmbeddingRecipe::kDirection) return;
  length_ = LengthOf([this](int64_t begin, size_t size) { return Used(begin, size); });
}

}  // namespace quantd
