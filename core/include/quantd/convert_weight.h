// Weights to and from the layouts of layout.h, bit for bit what the packages make of them.
//
//   WeightFacts facts;                                             // or MeasureWeight(...)
//   std::vector<LayoutPart> parts = WeightParts(*plan, facts);     // where do the bytes go?
//   absl::Status status = EncodeWeight(*plan, facts, source, sinks, executor, interrupted);
//   status = DecodeWeight(*plan, facts, sources, DataType::kFloat, sink, executor, interrupted);
//
// Tensors are read and written a piece at a time, through interfaces: a weight may be larger than
// memory. A call takes at most 4 MiB a thread of `executor`, and 1 MiB for all. The bytes are the
// same on every instruction set and for any number of threads. Safe from any thread, several calls
// at a time.
#ifndef QUANTD_CONVERT_WEIGHT_H_
#define QUANTD_CONVERT_WEIGHT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/executor.h"
#include "quantd/layout.h"

namespace quantd {

// The bytes of a stored tensor. Called from several threads at a time, in any order; the same bytes
// may be read more than once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `to` with the bytes from `offset` on. An error ends the call, which returns it.
  virtual absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const = 0;
  // All bytes, when they lie in memory: then nothing is copied, and Read may never be called.
  virtual const uint8_t* Memory() const { return nullptr; }
};

// Where the bytes of a tensor go. Called from several threads at a time, in any order, once for
// each byte.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual absl::Status Write(uint64_t offset, absl::Span<const uint8_t> from) = 0;
};

// Tensors in memory. The spans must outlive them.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const override;
  const uint8_t* Memory() const override { return bytes_.data(); }

 private:
  absl::Span<const uint8_t> bytes_;
};
class MemorySink final : public ByteSink {
 public:
  explicit MemorySink(absl::Span<uint8_t> bytes) : bytes_(bytes) {}
  absl::Status Write(uint64_t offset, absl::Span<const uint8_t> from) override;

 private:
  absl::Span<uint8_t> bytes_;
};

// What must be known of the weight before EncodeWeight, by reading all of it; nothing is read when
// !NeedsFacts(plan.layout). INVALID_ARGUMENT (field "weight") for the first NaN or infinity, with
// its place; CANCELLED when `interrupted` said so; an error of the source.
absl::StatusOr<WeightFacts> MeasureWeight(const WeightPlan& plan, const ByteSource& weight,
                                          const Executor& executor, Interrupted interrupted);

// Writes every part, parts[i] that of WeightParts(plan, facts)[i]. Errors as MeasureWeight, and of
// the sinks. INVALID_ARGUMENT (field "weight") also where a scale is infinite or a value does not
// fit FLOAT16: the first element that is to blame is named. After an error the parts may hold
// anything.
// REQUIRES: plan's layout encodes; `facts` are MeasureWeight's, or those with a larger `largest`.
absl::Status EncodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                          const ByteSource& weight, absl::Span<ByteSink* const> parts,
                          const Executor& executor, Interrupted interrupted);

// Reads the parts, in the order of WeightParts(plan), and writes the weight as `output`: FLOAT,
// FLOAT16 or BFLOAT16, each value rounded to it from what the layout's own decoding gives (half to
// even; too large becomes infinite). Any bytes are accepted. Parts that are constants or texts are
// not read, but for bitsandbytes' maps, which are used as they are. `facts`: `offset` for
// bitsandbytes' -double, as the text has it. CANCELLED, and errors of sources and sink.
// REQUIRES: parts[i] has the bytes that WeightParts(plan) says of it.
absl::Status DecodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                          absl::Span<const ByteSource* const> parts, DataType output,
                          ByteSink& weight, const Executor& executor, Interrupted interrupted);

}  // namespace quantd

#endif  // QUANTD_CONVERT_WEIGHT_H_
