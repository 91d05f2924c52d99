// How Quantize and Dequantize go through a tensor whose scales are given: with the columns of all
// scales, made once; or, where there are many, in parts of the elements, each with those of its
// own, so that they take no more memory than a part's do.
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

// When a tensor is cut, and into what. Tests cut small ones.
struct PartLimits {
  int64_t few_scales = 16 * 1024;   // of a tensor that is not cut
  int64_t shared_scales = 1 << 20;  // the same, where parts would share scales: [rows, channels]
  int64_t elements = 256 * 1024;    // of a part: 1 MiB of FLOAT
  int64_t scales = 32 * 1024;       // of a part; twice as many where it crosses the end of a row
};

// Some elements, as a tile loop sees them.
struct GivenPart {
  Part part;
  // Says which of the part's scales an element has.
  const BlockLayout* layout;
  // The part crosses the end of a row of very many scales. Its columns have an entry for each
  // element, and `layout` is that of such a tensor.
  bool each;
};

// Makes columns of a part's scales. They stay until the next part's are made. For one thread.
class ColumnReader {
 public:
  static constexpr size_t kColumns = 3;

  // `layout` is the tensor's.
  explicit ColumnReader(const BlockLayout& layout) : layout_(layout) {}

  // Null when the operand is empty. `column` < kColumns is the caller's number for it. As FLOAT
  // where they lie, if that is possible; they must not be written then.
  const float* Floats(const ScaleOperand& operand, const GivenPart& part, size_t column);
  // The same, in memory that may be written. REQUIRES: not empty.
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

// `workers` are for the part alone. `sums` may be null.
using PartBody = absl::FunctionRef<absl::Status(const GivenPart& part, ColumnReader& reader,
                                                Workers workers, ErrorSums* sums)>;

// Calls body for parts that together are elements [begin, end), several at a time; adds up their
// sums in their order unless `sums` is null. The first error. REQUIRES: `begin` is a multiple of
// kGroup.
absl::Status ForEachGivenPart(const BlockLayout& layout, int64_t begin, int64_t end,
                              Workers workers, ErrorSums* sums, PartBody body,
                              const PartLimits& limits = {});

}  // namespace quantd

#endif  // QUANTD_SRC_LINEAR_GIVEN_SCALES_H_
