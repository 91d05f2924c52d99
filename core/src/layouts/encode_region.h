// Encodes one region of a weight: one function per kind of layout.
#ifndef QUANTD_SRC_LAYOUTS_ENCODE_REGION_H_
#define QUANTD_SRC_LAYOUTS_ENCODE_REGION_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/find_kernel.h"
#include "kernels/kernel_table.h"
#include "layouts/faults.h"
#include "layouts/geometry.h"
#include "layouts/pieces.h"
#include "layouts/regions.h"
#include "quantd/layout.h"

namespace quantd {

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
