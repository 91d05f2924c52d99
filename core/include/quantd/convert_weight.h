// Converts weights to and from the layouts of layout.h, bit for bit like the original packages.
//
//   WeightFacts facts;                                             // or MeasureWeight(...)
//   std::vector<LayoutPart> parts = WeightParts(*plan, facts);     // the tensors to write
//   absl::Status status = EncodeWeight(*plan, facts, source, sinks, executor, interrupted);
//   status = DecodeWeight(*plan, facts, sources, DataType::kFloat, sink, executor, interrupted);
//
// Tensors are read and written in pieces, through interfaces, because a weight may be larger than
// memory. A call uses at most 4 MiB per thread of `executor`, plus 1 MiB. The bytes are the same on
// every instruction set and for any number of threads. Thread-safe; several calls may run at the
// same time.
#ifndef QUANTD_CONVERT_WEIGHT_H_
#define QUANTD_CONVERT_WEIGHT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/executor.h"
#include "quantd/layout.h"

namespace quantd {

// The bytes of a stored tensor. Called from several threads at the same time, in any order; the
// same bytes may be read several times.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `to` with the bytes from `offset` on. An error ends the call, which returns it.
  virtual absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const = 0;
  // All bytes, if they are in memory. Nothing is copied then, and Read may never be called.
  virtual const uint8_t* Memory() const { return nullptr; }
};

// Receives the bytes of a tensor. Called from several threads at the same time, in any order, once
// for each byte.
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

// Reads the whole weight to find what EncodeWeight must know. Reads nothing if
// !NeedsFacts(plan.layout). INVALID_ARGUMENT (field "weight"): the first NaN or infinity, with its
// position; CANCELLED: `interrupted` returned true; or an error of the source.
absl::StatusOr<WeightFacts> MeasureWeight(const WeightPlan& plan, const ByteSource& weight,
                                          const Executor& executor, Interrupted interrupted);

// Writes all parts; parts[i] is the sink of WeightParts(plan, facts)[i]. Returns the errors of
// MeasureWeight and of the sinks. INVALID_ARGUMENT (field "weight") also if a scale is infinite or
// a value does not fit FLOAT16: it names the first element that causes this. After an error the
// contents of the parts are undefined. REQUIRES: the plan's layout encodes; `facts` are from
// MeasureWeight, or the same with a larger `largest`.
absl::Status EncodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                          const ByteSource& weight, absl::Span<ByteSink* const> parts,
                          const Executor& executor, Interrupted interrupted);

// Reads the parts, in the order of WeightParts(plan), and writes the weight as `output`: FLOAT,
// FLOAT16 or BFLOAT16. Each value is the layout's own decoded value, rounded half to even; too
// large values become infinite. Any bytes are accepted. Parts that are constants or texts are not
// read, except for bitsandbytes' maps, which are used as they are. `facts`: `offset` for
// bitsandbytes' -double, as in the text. Returns CANCELLED, or errors of sources and sink.
// REQUIRES: parts[i] has the size that WeightParts(plan) gives for it.
absl::Status DecodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                          absl::Span<const ByteSource* const> parts, DataType output,
                          ByteSink& weight, const Executor& executor, Interrupted interrupted);

}  // namespace quantd

#endif  // QUANTD_CONVERT_WEIGHT_H_
