// Decodes one region of a weight: one function per kind of layout.
#ifndef QUANTD_SRC_LAYOUTS_DECODE_REGION_H_
#define QUANTD_SRC_LAYOUTS_DECODE_REGION_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "layouts/geometry.h"
#include "layouts/pieces.h"
#include "layouts/regions.h"
#include "quantd/layout.h"

namespace quantd {

// Shared by all regions of a call.
struct Decoding {
  const WeightPlan& plan;
  const WeightFacts& facts;
  const KernelTable& kernels;
  DataType output;
  // Parts that are read as a whole: nvfp4's scale of the tensor, and bitsandbytes' maps.
  float global_scale = 1;
  std::array<float, 16> map = {};
  std::array<float, 256> nested_map = {};

  size_t width() const { return static_cast<size_t>(Info(output).bits / 8); }  // of an output
};

// One region: its bytes of each part that is cut, and room for its elements, row after
// row.
struct DecodeBytes {
  Region region;
  std::array<Rows<const uint8_t>, 4> parts;  // indexed by Role
  Rows<uint8_t> y;

  const Rows<const uint8_t>& operator[](Role role) const {
    return parts[static_cast<size_t>(role)];
  }
};

// For the layouts that are not decoded by their grids (decode.cc).
using DecodeRegion = void (*)(const Decoding& decoding, const DecodeBytes& bytes);
DecodeRegion DecodeRegionOf(Layout layout);

// The pass over all regions: reads the parts that are cut, and writes what `decode` makes of them.
absl::Status DecodeRegions(const Geometry& geometry, absl::Span<const ByteSource* const> parts,
                           DataType output, ByteSink& weight, const Executor& executor,
                           Interrupted interrupted,
                           absl::FunctionRef<void(const DecodeBytes&)> decode);

// Converts pieces of FLOAT to the output's type.
class OutputPiece {
 public:
  // `through`: values are rounded to this type first; FLOAT: no rounding.
  OutputPiece(const Decoding& decoding, DataType through)
      : OutputPiece(decoding.kernels, decoding.output, through) {}
  OutputPiece(const KernelTable& kernels, DataType output, DataType through)
      : kernels_(kernels), through_(through), output_(output) {}

  float* values() { return values_.data(); }
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(values_.data()); }
  // Writes the first `size` values.
  void Store(size_t size, uint8_t* y);

 private:
  const KernelTable& kernels_;
  DataType through_, output_;
  alignas(64) std::array<float, kPiece> values_;
  alignas(64) std::array<uint8_t, kPiece * 2> narrow_;
};

// ---- The functions ------------------------------------------------------------------------------

void DecodeBnbInt8(const Decoding& decoding, const DecodeBytes& bytes);
void DecodeFp4(const Decoding& decoding, const DecodeBytes& bytes);
void DecodeFloats(const Decoding& decoding, const DecodeBytes& bytes);
void DecodeGguf(const Decoding& decoding, const DecodeBytes& bytes);
void DecodeBnb4(const Decoding& decoding, const DecodeBytes& bytes);

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_DECODE_REGION_H_
