// How the elements of a weight and the bytes of its parts correspond.
//
// Every layout is a view: a matrix of the weight's elements (its rows and columns, or all of it as
// one row) that can be cut into regions: some bands of rows, or some columns of one band. For each
// part the same cut is a rectangle of bytes, so that one loop (regions.h) serves all layouts.
#ifndef QUANTD_SRC_LAYOUTS_GEOMETRY_H_
#define QUANTD_SRC_LAYOUTS_GEOMETRY_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "quantd/layout.h"

namespace quantd {

// The meaning of a part in its layout.
enum class Role : uint8_t {
  kCodes,        // of the elements; gguf: the whole blocks
  kScale,        // one per row, group or tile; bitsandbytes: absmax, or its codes
  kZeroPoint,    // one per group
  kNestedScale,  // bitsandbytes' -double: the largest of 256 absmax values
  // The following are not cut: they are written as a whole, with the first region.
  kTensorScale,
  kGlobalScale,  // nvfp4
  kShape,
  kMap,        // bitsandbytes: the 16 values of the codes
  kNestedMap,  // bitsandbytes: the 256 values of absmax's codes
  kState,      // bitsandbytes: a text
  kFormat,     // bitsandbytes' int8: a 0
};
constexpr bool IsCut(Role role) { return role < Role::kTensorScale; }

struct PartGeometry {
  Role role = Role::kCodes;
  absl::string_view suffix;  // as in LayoutPart
  absl::string_view dtype;
  Shape shape;
  // IsCut: the rows of the view per row of the part, the columns of the view per unit, and the
  // bytes of a unit. An incomplete row or unit at the end counts as a whole one.
  int64_t row_step = 1;
  int64_t column_step = 1;
  int64_t unit_bytes = 1;
  uint64_t bytes = 0;      // of the whole part
  uint64_t row_bytes = 0;  // IsCut: of one row of the part
};

struct Geometry {
  int64_t rows = 1;  // of the view
  int64_t columns = 0;
  int64_t band = 1;   // rows that are encoded together
  int64_t align = 0;  // bands are cut at multiples of this; 0: never
  absl::InlinedVector<PartGeometry, 6> parts;
};

Geometry GeometryOf(const WeightPlan& plan, const WeightFacts& facts);

// The rows and columns of a tile of fp8-tiles and fp8-block.
inline constexpr int64_t kTile = 128;

constexpr bool IsInt8(Layout layout) {
  return layout == Layout::kInt8 || layout == Layout::kInt8Tensor;
}
constexpr bool IsAsymmetric(Layout layout) {
  return layout == Layout::kInt4G128Asym || layout == Layout::kInt4G32Asym;
}
// Otherwise, of bitsandbytes' layouts of 4 bits: fp4.
constexpr bool IsNf4(Layout layout) {
  return layout == Layout::kBnbNf4 || layout == Layout::kBnbNf4Double;
}

// Division, rounded up. REQUIRES: a >= 0, b > 0.
constexpr int64_t DivideUp(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_GEOMETRY_H_
