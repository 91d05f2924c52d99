// How Quantize and Dequantize iterate over a tensor with given scales: with the columns of all
// scales, made once; or, if there are many, in parts of the elements, each with its own columns, so
// that they take no more memory than those of a part.
#ifndef QUANTD_SRC_LINEAR_GIVEN_SCALES_H_
#define QUANTD_SRC_LINEAR_GIVEN_SCALES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "pool/tasks.h"
#include "quantd/plan.h"
#include "quantd/quantization_error.h"
#include "walk/part.h"

namespace quantd {

// When and how a tensor is cut. Tests cut small ones.
struct PartLimits {
  int64_t few_scales = 16 * 1024;   // of a tensor that is not cut
  int64_t shared_scales = 1 << 20;  // the same if parts would share scales: [rows, channels]
  int64_t elements = 256 * 1024;    // in a part: 1 MiB of FLOAT
  int64_t scales = 32 * 1024;       // in a part; twice as many if it crosses the end of a row
};

// Some elements, as a tile loop sees them.
struct GivenPart {
  Part part;
  // Maps elements of the part to its scales.
  const BlockLayout* layout;
  // The part crosses the end of a row with very many scales. Its columns have one entry per
  // element, and `layout` is that of such a tensor.
  bool each;
};

// Makes columns of a part's scales. They stay valid until those of the next part are made. For one
// thread.
class ColumnReader {
 public:
  static constexpr size_t kColumns = 3;

  // `layout` is that of the tensor.
  explicit ColumnReader(const BlockLayout& layout) : layout_(layout) {}

  // Null if the operand is empty. `column` < kColumns is the caller's number for it. Returns FLOAT
  // in place if possible; do not write to the result.
  const float* Floats(const ScaleOperand& operand, const GivenPart& part, size_t column);
  // Like Floats, but in memory that may be written. REQUIRES: not empty.
  float* OwnFloats(const ScaleOperand& operand, const GivenPart& part, size_t column);
  // As stored: integers, or codes.
  const int32_t* Integers(const ScaleOperand& operand, const GivenPart& part, size_t column);

 private:
  union Value {
    float real;
    int32_t integer;
  };
  Value* Room(size_t size, size_t column);

  const BlockLayout& layout_;
  std::array<std::unique_ptr<Value[]>, kColumns> columns_;
  std::array<size_t, kColumns> sizes_ = {};
};

// `workers` are for this part only. `sums` may be null.
using PartBody = absl::FunctionRef<absl::Status(const GivenPart& part, ColumnReader& reader,
                                                Workers workers, ErrorSums* sums)>;

// Calls body for parts that together cover elements [begin, end), several at the same time. Adds up
// their sums in order unless `sums` is null. Returns the first error. REQUIRES: `begin` is a
// multiple of kGroup.
absl::Status ForEachGivenPart(const BlockLayout& layout, int64_t begin, int64_t end,
                              Workers workers, ErrorSums* sums, PartBody body,
                              const PartLimits& limits = {});

}  // namespace quantd

#endif  // QUANTD_SRC_LINEAR_GIVEN_SCALES_H_
