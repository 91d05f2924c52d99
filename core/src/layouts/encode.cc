// EncodeWeight and MeasureWeight: the passes over a weight.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "layouts/constants.h"
#include "layouts/encode_region.h"
#include "layouts/geometry.h"
#include "layouts/regions.h"
#include "quantd/convert_weight.h"
#include "quantd/field_error.h"
#include "rules/layouts.h"

namespace quantd {
namespace {

// Elements of a step of MeasureWeight: sums of steps are added in order, for any number of
// threads.
constexpr int64_t kStep = int64_t{1} << 18;
static_assert(kStep % kPiece == 0);

// One row of `columns` elements, for passes that only read.
Geometry FlatView(int64_t columns) {
  Geometry view;
  view.columns = columns;
  view.align = kStep;
  return view;
}

// Raises a value that tasks share to a larger magnitude.
void Raise(std::atomic<uint32_t>& cell, float magnitude) {
  const auto bits = std::bit_cast<uint32_t>(magnitude);
  uint32_t seen = cell.load(std::memory_order_relaxed);
  while (bits > seen && !cell.compare_exchange_weak(seen, bits)) {
  }
}

// One call of MeasureWeight or EncodeWeight.
struct Call {
  const WeightPlan& plan;
  const ByteSource& weight;
  const Executor& executor;
  Interrupted interrupted;
  const KernelTable& kernels;
  Faults& faults;

  int64_t width() const { return Info(plan.type).bits / 8; }
};

// Calls body(x, region) for steps of `size` elements from `begin` on, in parallel, unless a
// non-finite element before them is known.
absl::Status ForEachStep(const Call& call, int64_t begin, int64_t size,
                         absl::FunctionRef<void(const uint8_t* x, const Region&)> body) {
  const Geometry view = FlatView(size);
  return ForEachRegion(Regions(view, 0, 1, call.width(), kStep * call.width()), call.executor,
                       call.interrupted, [&](const Region& region, Buffers& buffers) {
                         if (call.faults.NonFiniteBefore(begin + region.column))
                           return absl::OkStatus();
                         ByteRectangle rectangle = WeightBytesOf(view, region, call.width());
                         rectangle.offset += static_cast<uint64_t>(begin * call.width());
                         Rows<const uint8_t> x;
                         absl::Status read =
                             ReadRectangle(call.weight, rectangle, buffers.weight, x);
                         if (read.ok()) body(x.bytes, region);
                         return read;
                       });
}

// The largest magnitude of elements [begin, begin + size). Records non-finite elements.
absl::StatusOr<float> LargestOf(const Call& call, int64_t begin, int64_t size) {
  const Largest largest_of(call.kernels, call.plan.type);
  std::atomic<uint32_t> largest = 0;
  absl::Status status = ForEachStep(call, begin, size, [&](const uint8_t* x, const Region& region) {
    const float found = largest_of(x, static_cast<size_t>(region.columns));
    if (!std::isfinite(found)) {
      call.faults.FindNonFinite(x, region.columns, begin + region.column);
    }
    Raise(largest, found);
  });
  if (!status.ok()) return status;
  return std::bit_cast<float>(largest.load());
}

// bitsandbytes' -double: the mean of absmax.
absl::StatusOr<float> MeanAbsmax(const Call& call) {
  constexpr int64_t kBlock = rules::kBnbBlock;
  const Largest largest_of(call.kernels, call.plan.type);
  const int64_t elements = call.plan.elements;
  std::vector<double> sums(static_cast<size_t>(DivideUp(elements, kStep)));
  absl::Status status = ForEachStep(call, 0, elements, [&](const uint8_t* x, const Region& region) {
    double sum = 0;
    for (int64_t i = 0; i < region.columns; i += kBlock) {
      const int64_t size = std::min(kBlock, region.columns - i);
      float absmax = largest_of(x + i * call.width(), static_cast<size_t>(size));
      if (!std::isfinite(absmax)) {
        call.faults.FindNonFinite(x, region.columns, region.column);
        return;
      }
      if (size < kBlock) absmax = rules::LastBlockAbsmax(absmax);
      sum += static_cast<double>(absmax);
    }
    sums[static_cast<size_t>(region.column / kStep)] = sum;
  });
  if (!status.ok()) return status;
  double sum = 0;
  for (const double part : sums) sum += part;
  return static_cast<float>(sum / static_cast<double>(DivideUp(elements, kBlock)));
}

// Encodes rows [row_begin, row_end) of the view.
absl::Status EncodeView(const Call& call, const Encoding& encoding, int64_t row_begin,
                        int64_t row_end, absl::Span<ByteSink* const> sinks) {
  const Geometry& geometry = encoding.geometry;
  const EncodeRegion encode = EncodeRegionOf(call.plan.layout);
  const Regions regions(geometry, row_begin, row_end, call.width(),
                        PieceBytes(geometry, call.plan.weight_bytes, call.executor.threads()));
  return ForEachRegion(
      regions, call.executor, call.interrupted, [&](const Region& region, Buffers& buffers) {
        if (call.faults.NonFiniteBefore(encoding.IndexOf(region.row, region.column))) {
          return absl::OkStatus();
        }
        RegionBytes bytes{.region = region, .x = {}, .parts = {}};
        absl::Status status = ReadRectangle(
            call.weight, WeightBytesOf(geometry, region, call.width()), buffers.weight, bytes.x);
        if (!status.ok()) return status;
        for (size_t i = 0; i < geometry.parts.size(); ++i) {
          const PartGeometry& part = geometry.parts[i];
          if (!IsCut(part.role)) continue;
          const ByteRectangle rectangle = PartBytesOf(part, region);
          bytes.parts[static_cast<size_t>(part.role)] = {buffers.parts[i].Make(rectangle.bytes()),
                                                         rectangle.row_bytes};
        }
        encode(encoding, bytes);
        for (size_t i = 0; i < geometry.parts.size(); ++i) {
          const PartGeometry& part = geometry.parts[i];
          // Regions of one row have its scale in common; the first one writes it.
          if (!IsCut(part.role) || region.column % part.column_step != 0) continue;
          status = WriteRectangle(*sinks[i], PartBytesOf(part, region), bytes[part.role].bytes);
          if (!status.ok()) return status;
        }
        return absl::OkStatus();
      });
}

// Rows with one scale each that are longer than a piece: one after the other, in two passes, by all
// threads.
absl::Status EncodeLongRows(const Call& call, const Encoding& encoding,
                            absl::Span<ByteSink* const> sinks) {
  Geometry cut = encoding.geometry;
  cut.align = kPiece;
  for (int64_t row = 0; row < cut.rows; ++row) {
    const absl::StatusOr<float> largest = LargestOf(call, row * cut.columns, cut.columns);
    if (!largest.ok()) return largest.status();
    if (!std::isfinite(*largest)) return absl::OkStatus();  // already recorded
    const Encoding of_row = {.plan = encoding.plan,
                             .facts = encoding.facts,
                             .geometry = cut,
                             .kernels = encoding.kernels,
                             .faults = encoding.faults,
                             .row_largest = &*largest};
    absl::Status status = EncodeView(call, of_row, row, row + 1, sinks);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Longer rows are encoded by EncodeLongRows.
constexpr int64_t kLongRowBytes = 1024 * 1024;

}  // namespace

bool Faults::FindNonFinite(const uint8_t* x, int64_t size, int64_t index) {
  const int64_t width = Info(plan_.type).bits / 8;
  for (int64_t i = 0; i < size; ++i) {
    if (std::isfinite(LoadElement(plan_.type, x + i * width))) continue;
    NonFinite(index + i);
    return true;
  }
  return false;
}

std::string Faults::Place(int64_t index) const {
  Shape place(plan_.shape.size());
  for (size_t d = place.size(); d-- > 0;) {
    place[d] = index % plan_.shape[d];
    index /= plan_.shape[d];
  }
  return ShapeString(place);
}

absl::Status Faults::Status(const ByteSource& weight) const {
  const bool non_finite = non_finite_.index() < plan_.elements;
  const int64_t index = non_finite ? non_finite_.index() : too_large_.index();
  if (index >= plan_.elements) return absl::OkStatus();
  const auto width = static_cast<size_t>(Info(plan_.type).bits / 8);
  std::array<uint8_t, 4> bytes = {};
  absl::Status read =
      weight.Read(static_cast<uint64_t>(index) * width, absl::MakeSpan(bytes.data(), width));
  if (!read.ok()) return read;
  const float value = LoadElement(plan_.type, bytes.data());
  if (non_finite) {
    const absl::string_view what = std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    return FieldError("weight", absl::StrCat(what, " at ", Place(index), ", ",
                                             Info(plan_.layout).name, " takes finite values"));
  }
  if (plan_.layout == Layout::kGgufF16 || plan_.layout == Layout::kBnbInt8) {
    return FieldError("weight", absl::StrCat(value, " at ", Place(index),
                                             " is too large for FLOAT16, which ends at 65504"));
  }
  const bool gguf = Info(plan_.layout).family == LayoutFamily::kGguf;
  return FieldError(
      "weight",
      absl::StrCat("the scale", gguf ? " or the minimum" : "", " of the block from ", Place(index),
                   " on is too large for ", gguf ? "FLOAT16" : Name(plan_.type)));
}

absl::StatusOr<WeightFacts> MeasureWeight(const WeightPlan& plan, const ByteSource& weight,
                                          const Executor& executor, Interrupted interrupted) {
  WeightFacts facts;
  if (!NeedsFacts(plan.layout)) return facts;
  Faults faults(plan);
  const Call call{plan, weight, executor, interrupted, Kernels(), faults};
  const bool mean = Info(plan.layout).family == LayoutFamily::kBitsAndBytes;
  const absl::StatusOr<float> found = mean ? MeanAbsmax(call) : LargestOf(call, 0, plan.elements);
  if (!found.ok()) return found.status();
  absl::Status status = faults.Status(weight);
  if (!status.ok()) return status;
  (mean ? facts.offset : facts.largest) = *found;
  return facts;
}

absl::Status EncodeWeight(const WeightPlan& plan, const WeightFacts& facts,
                          const ByteSource& weight, absl::Span<ByteSink* const> parts,
                          const Executor& executor, Interrupted interrupted) {
  Faults faults(plan);
  const Call call{plan, weight, executor, interrupted, Kernels(), faults};
  const Geometry geometry = GeometryOf(plan, facts);
  const Encoding encoding = {.plan = plan,
                             .facts = facts,
                             .geometry = geometry,
                             .kernels = call.kernels,
                             .faults = faults};
  const bool long_rows = geometry.align == 0 && geometry.columns * call.width() > kLongRowBytes;
  absl::Status status = long_rows ? EncodeLongRows(call, encoding, parts)
                                  : EncodeView(call, encoding, 0, geometry.rows, parts);
  if (!status.ok()) return status;
  status = faults.Status(weight);
  if (!status.ok()) return status;
  for (size_t i = 0; i < geometry.parts.size(); ++i) {
    if (IsCut(geometry.parts[i].role)) continue;
    const std::string bytes = ConstantBytes(plan, facts, geometry.parts[i].role);
    status = parts[i]->Write(
        0, absl::MakeSpan(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace quantd
