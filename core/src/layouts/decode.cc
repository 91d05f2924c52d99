// DecodeWeight: the pass over the parts of a weight.
#include <array>
#include <cstdint>
#include <vector>

#include "layouts/decode_region.h"
#include "layouts/geometry.h"
#include "layouts/regions.h"
#include "quantd/convert_weight.h"
#include "rules/layouts.h"

namespace quantd {
namespace {

bool IsFp4(Layout layout) { return layout == Layout::kBnbFp4 || layout == Layout::kBnbFp4Double; }

// Reads the parts that all regions need.
absl::Status ReadWholeParts(const Geometry& geometry, absl::Span<const ByteSource* const> parts,
                            Decoding& decoding) {
  for (size_t i = 0; i < geometry.parts.size(); ++i) {
    const PartGeometry& part = geometry.parts[i];
    const auto read = [&](void* to) {
      return parts[i]->Read(0, {static_cast<uint8_t*>(to), static_cast<size_t>(part.bytes)});
    };
    absl::Status status;
    std::array<uint8_t, sizeof(float)> scale = {};
    switch (part.role) {
      case Role::kTensorScale:
        status = read(scale.data());
        decoding.tensor_scale = LoadElement(decoding.plan.type, scale.data());
        break;
      case Role::kGlobalScale:
        status = read(&decoding.tensor_scale);
        break;
      case Role::kMap:
        status = read(decoding.map.data());
        if (IsFp4(decoding.plan.layout)) rules::SetFp4Signs(decoding.map);
        break;
      case Role::kNestedMap:
        status = read(decoding.nested_map.data());
        break;
      default:
        break;
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                          absl::Span<const ByteSource* const> parts, DataType output,
                          ByteSink& weight, const Executor& executor, Interrupted interrupted) {
  Geometry geometry = GeometryOf(plan, facts);
  // Rows with a known scale can be cut.
  if (geometry.align == 0) geometry.align = kPiece;
  Decoding decoding{.plan = plan,
                    .facts = facts,
                    .kernels = Kernels(),
                    .output = output,
                    .map = {},
                    .nested_map = {}};
  absl::Status status = ReadWholeParts(geometry, parts, decoding);
  if (!status.ok()) return status;
  const int64_t width = Info(output).bits / 8;
  const DecodeRegion decode = DecodeRegionOf(plan.layout);
  const Regions regions(geometry, 0, geometry.rows, width,
                        PieceBytes(geometry, ByteSize(output, plan.elements), executor.threads()));
  return ForEachRegion(regions, executor, interrupted, [&](const Region& region, Buffers& buffers) {
    DecodeBytes bytes{.region = region, .parts = {}, .y = {}};
    for (size_t i = 0; i < geometry.parts.size(); ++i) {
      const PartGeometry& part = geometry.parts[i];
      if (!IsCut(part.role)) continue;
      absl::Status read = ReadRectangle(*parts[i], PartBytesOf(part, region), buffers.parts[i],
                                        bytes.parts[static_cast<size_t>(part.role)]);
      if (!read.ok()) return read;
    }
    const ByteRectangle rectangle = WeightBytesOf(geometry, region, width);
    bytes.y = {buffers.weight.Make(rectangle.bytes()), rectangle.row_bytes};
    decode(decoding, bytes);
    return WriteRectangle(weight, rectangle, bytes.y.bytes);
  });
}

}  // namespace quantd
