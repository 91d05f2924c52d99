// Converts the values of embeddings to FLOAT.
#ifndef QUANTD_SRC_EMBEDDINGS_VECTORS_H_
#define QUANTD_SRC_EMBEDDINGS_VECTORS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/find_kernel.h"
#include "kernels/kernel_table.h"
#include "quantd/plan.h"

namespace quantd {

// A task's view of x: one row after the other, each in pieces. FLOAT values in memory are not
// copied. For one thread.
class Vectors {
 public:
  // 4 KiB of FLOAT: they stay in L1 together with the results.
  static constexpr int64_t kPiece = 1024;

  Vectors(const QuantizeEmbeddingsPlan& plan, absl::Span<const uint8_t> x);

  // Moves to a row. If `lengths` is true, length() is valid afterwards.
  void Seek(int64_t row, bool lengths);
  // The length of the row's used values, after normalisation.
  double length() const { return length_; }

  // Values [begin, begin + size) of the row as given. Overwritten by the next call. REQUIRES: begin
  // is a multiple of kPiece; 0 < size <= kPiece; not beyond the row.
  const uint8_t* Given(int64_t begin, size_t size);
  // Like Given, but normalised if the plan says so and the row has a length.
  const uint8_t* Used(int64_t begin, size_t size);

 private:
  template <typename Values>
  double LengthOf(Values values);

  const QuantizeEmbeddingsPlan& plan_;
  const KernelTable& kernels_;
  const absl::Span<const uint8_t> x_;
  const ConvertTile to_float_;
  int64_t row_begin_ = 0;           // index of its first element
  double length_ = 0;               // of the values that Used returns
  double divisor_ = 0;              // 0: Used returns the same as Given
  const uint8_t* given_ = nullptr;  // the last piece
  int64_t given_begin_ = -1;        // its first element in the tensor
  size_t given_size_ = 0;
  alignas(64) std::array<uint8_t, kPiece * 4> floats_;
  alignas(64) std::array<uint8_t, kPiece * 4> normalized_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_EMBEDDINGS_VECTORS_H_
