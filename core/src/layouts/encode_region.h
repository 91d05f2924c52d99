// Encodes one region of a weight: one function per kind of layout.
#ifndef QUANTD_SRC_LAYOUTS_ENCODE_REGION_H_
#define QUANTD_SRC_LAYOUTS_ENCODE_REGION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "kernels/find_kernel.h"
#include "kernels/kernel_table.h"
#include "layouts/geometry.h"
#include "layouts/pieces.h"
#include "layouts/regions.h"
#include "pool/first.h"
#include "quantd/convert_weight.h"
#include "quantd/layout.h"

namespace quantd {

// Invalid elements of a weight: found by parallel tasks, reported as one error.
// The first element of each kind. Thread-safe.
class Faults {
 public:
  explicit Faults(const WeightPlan& plan)
      : plan_(plan), non_finite_(plan.elements), too_large_(plan.elements) {}

  // Element `index` of the weight is NaN or infinite; or because of it a scale is infinite or does
  // not fit FLOAT16; or the element itself does not fit FLOAT16.
  void NonFinite(int64_t index) { non_finite_.Found(index); }
  void TooLarge(int64_t index) { too_large_.Found(index); }

  // Whether an element before `index` is not finite, so that later elements no longer matter.
  bool NonFiniteBefore(int64_t index) const { return non_finite_.index() < index; }

  // Records the first element that is not finite among `size` contiguous ones from element `index`
  // on. Returns whether there is one.
  bool FindNonFinite(const uint8_t* x, int64_t size, int64_t index);

  // OK, or the error; a non-finite element takes precedence. Reads that element.
  absl::Status Status(const ByteSource& weight) const;

 private:
  std::string Place(int64_t index) const;

  const WeightPlan& plan_;
  First non_finite_;
  First too_large_;
};

// One region: its elements, and room for its bytes of each part that is cut, row after row. All of
// these bytes must be written.
struct RegionBytes {
  Region region;
  Rows<const uint8_t> x;
  std::array<Rows<uint8_t>, 4> parts;  // indexed by Role

  const Rows<uint8_t>& operator[](Role role) const { return parts[static_cast<size_t>(role)]; }
};

// Shared by all regions of a call.
struct Encoding {
  const WeightPlan& plan;
  const WeightFacts& facts;
  const Geometry& geometry;
  const KernelTable& kernels;
  Faults& faults;
  // For a layout with one scale per row, if a row is encoded in several regions: its largest
  // magnitude.
  const float* row_largest = nullptr;

  DataType type() const { return plan.type; }
  size_t width() const { return static_cast<size_t>(Info(plan.type).bits / 8); }
  // The index in the weight of the element at this place of the view.
  int64_t IndexOf(int64_t row, int64_t column) const { return row * geometry.columns + column; }
  // The largest magnitude of a row of a region. One that is not finite is recorded in the faults.
  float LargestOfRow(const RegionBytes& bytes, int64_t row) const;
};

// Elements that are not finite, or do not fit, are recorded in the faults; the bytes of their
// region are meaningless then.
using EncodeRegion = void (*)(const Encoding& encoding, const RegionBytes& bytes);
EncodeRegion EncodeRegionOf(Layout layout);

// ---- The functions ------------------------------------------------------------------------------

void EncodeRows(const Encoding& encoding, const RegionBytes& bytes);    // int8, fp8 and -tensor
void EncodeTiles(const Encoding& encoding, const RegionBytes& bytes);   // fp8-tiles, fp8-block
void EncodeInt4(const Encoding& encoding, const RegionBytes& bytes);    // int4-*
void EncodeFp4(const Encoding& encoding, const RegionBytes& bytes);     // nvfp4, mxfp4
void EncodeFloats(const Encoding& encoding, const RegionBytes& bytes);  // gguf: f32, f16, bf16
void EncodeGguf(const Encoding& encoding, const RegionBytes& bytes);    // gguf: blocks
void EncodeBnb4(const Encoding& encoding, const RegionBytes& bytes);    // nf4, fp4, -double
void EncodeBnbInt8(const Encoding& encoding, const RegionBytes& bytes);

// The scale of a whole tensor: int8-tensor, fp8-tensor.
float TensorScale(const WeightPlan& plan, const WeightFacts& facts);

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_ENCODE_REGION_H_
