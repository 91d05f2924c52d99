#include "layouts/geometry.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "layouts/constants.h"
#include "quantd/field_error.h"

namespace quantd {
namespace {

// Flat views of layouts without blocks can be cut anywhere; whole vectors are faster.
constexpr int64_t kAnyAlign = 64;
constexpr int64_t kBnbBlock = 64;
constexpr int64_t kBnbNested = 256 * kBnbBlock;

absl::string_view DtypeOf(DataType type) {
  if (type == DataType::kFloat16) return "F16";
  return type == DataType::kBfloat16 ? "BF16" : "F32";
}

// Adds the parts of a geometry, one after the other.
class Builder {
 public:
  explicit Builder(const WeightPlan& plan) : plan_(plan) {}

  Builder& View(int64_t rows, int64_t columns, int64_t band, int64_t align) {
    geometry_.rows = rows;
    geometry_.columns = columns;
    geometry_.band = band;
    geometry_.align = align;
    return *this;
  }
  Builder& Flat(int64_t align) { return View(1, plan_.elements, 1, align); }
  Builder& Matrix(int64_t band, int64_t align) {
    return View(plan_.rows, plan_.columns, band, align);
  }

  // A part with one unit per `row_step` rows and `column_step` columns.
  Builder& Cut(Role role, absl::string_view suffix, absl::string_view dtype, Shape shape,
               int64_t row_step, int64_t column_step, int64_t unit_bytes) {
    PartGeometry part{.role = role,
                      .suffix = suffix,
                      .dtype = dtype,
                      .shape = std::move(shape),
                      .row_step = row_step,
                      .column_step = column_step,
                      .unit_bytes = unit_bytes};
    part.row_bytes = static_cast<uint64_t>(DivideUp(geometry_.columns, column_step) * unit_bytes);
    part.bytes = static_cast<uint64_t>(DivideUp(geometry_.rows, row_step)) * part.row_bytes;
    geometry_.parts.push_back(std::move(part));
    return *this;
  }
  Builder& Whole(Role role, absl::string_view suffix, absl::string_view dtype, Shape shape,
                 uint64_t bytes) {
    geometry_.parts.push_back({.role = role,
                               .suffix = suffix,
                               .dtype = dtype,
                               .shape = std::move(shape),
                               .bytes = bytes});
    return *this;
  }

  Geometry Take() { return std::move(geometry_); }

 private:
  const WeightPlan& plan_;
  Geometry geometry_;
};

Geometry Tiles(const WeightPlan& plan, absl::string_view suffix, DataType scale) {
  return Builder(plan)
      .Matrix(kTile, kTile)
      .Cut(Role::kCodes, "", "F8_E4M3", plan.shape, 1, 1, 1)
      .Cut(Role::kScale, suffix, DtypeOf(scale),
           {DivideUp(plan.rows, kTile), DivideUp(plan.columns, kTile)}, kTile, kTile,
           Info(scale).bits / 8)
      .Take();
}

Geometry Rows(const WeightPlan& plan, absl::string_view dtype) {
  return Builder(plan)
      .Matrix(1, 0)
      .Cut(Role::kCodes, "", dtype, plan.shape, 1, 1, 1)
      .Cut(Role::kScale, "_scale", DtypeOf(plan.type), {plan.rows, 1}, 1, plan.columns,
           Info(plan.type).bits / 8)
      .Take();
}

Geometry OneScale(const WeightPlan& plan, absl::string_view dtype) {
  return Builder(plan)
      .Flat(kAnyAlign)
      .Cut(Role::kCodes, "", dtype, plan.shape, 1, 1, 1)
      .Whole(Role::kTensorScale, "_scale", DtypeOf(plan.type), {1},
             static_cast<uint64_t>(Info(plan.type).bits / 8))
      .Take();
}

Geometry Int4(const WeightPlan& plan) {
  const int64_t group = Info(plan.layout).columns_of;
  const bool asymmetric = IsAsymmetric(plan.layout);
  const int64_t groups = plan.columns / group;
  Builder builder(plan);
  if (asymmetric) {
    builder.Matrix(8, group);
  } else {
    builder.Flat(group);
  }
  builder.Cut(Role::kCodes, "_packed", "I32", {plan.rows, plan.columns / 8}, 1, 8, 4)
      .Cut(Role::kScale, "_scale", DtypeOf(plan.type), {plan.rows, groups}, 1, group,
           Info(plan.type).bits / 8);
  if (asymmetric) {
    builder.Cut(Role::kZeroPoint, "_zero_point", "I32", {DivideUp(plan.rows, 8), groups}, 8, group,
                4);
  }
  return builder.Whole(Role::kShape, "_shape", "I64", {2}, 16).Take();
}

Geometry Fp4(const WeightPlan& plan, int64_t group, absl::string_view scale_dtype) {
  Builder builder(plan);
  builder.Flat(group)
      .Cut(Role::kCodes, "_packed", "U8", {plan.rows, plan.columns / 2}, 1, 2, 1)
      .Cut(Role::kScale, "_scale", scale_dtype, {plan.rows, plan.columns / group}, 1, group, 1);
  if (plan.layout == Layout::kNvfp4) {
    builder.Whole(Role::kGlobalScale, "_global_scale", "F32", {1}, 4);
  }
  return builder.Take();
}

Geometry Gguf(const WeightPlan& plan) {
  const LayoutInfo& info = Info(plan.layout);
  return Builder(plan)
      .Flat(info.columns_of == 1 ? kAnyAlign : info.columns_of)
      .Cut(Role::kCodes, "", info.ggml_name, plan.shape, 1, info.columns_of, info.block_bytes)
      .Take();
}

Geometry Bnb4(const WeightPlan& plan, const WeightFacts& facts) {
  const bool nested = NeedsFacts(plan.layout);
  const int64_t blocks = DivideUp(plan.elements, kBnbBlock);
  Builder builder(plan);
  builder.Flat(nested ? kBnbNested : kBnbBlock)
      .Cut(Role::kCodes, "", "U8", {DivideUp(plan.elements, 2), 1}, 1, 2, 1)
      .Cut(Role::kScale, ".absmax", nested ? "U8" : "F32", {blocks}, 1, kBnbBlock, nested ? 1 : 4)
      .Whole(Role::kMap, ".quant_map", "F32", {16}, 64);
  if (nested) {
    builder
        .Cut(Role::kNestedScale, ".nested_absmax", "F32", {DivideUp(blocks, 256)}, 1, kBnbNested, 4)
        .Whole(Role::kNestedMap, ".nested_quant_map", "F32", {256}, 1024);
  }
  const size_t bytes = QuantStateText(plan, facts).size();
  return builder
      .Whole(Role::kState, QuantStateSuffix(plan.layout), "U8", {static_cast<int64_t>(bytes)},
             bytes)
      .Take();
}

Geometry BnbInt8(const WeightPlan& plan) {
  return Builder(plan)
      .Matrix(1, 0)
      .Cut(Role::kCodes, "", "I8", plan.shape, 1, 1, 1)
      .Cut(Role::kScale, ".SCB", "F32", {plan.rows}, 1, plan.columns, 4)
      .Whole(Role::kFormat, "_format", "U8", {}, 1)
      .Take();
}

}  // namespace

Geometry GeometryOf(const WeightPlan& plan, const WeightFacts& facts) {
  const LayoutInfo& info = Info(plan.layout);
  if (info.family == LayoutFamily::kGguf) return Gguf(plan);
  switch (plan.layout) {
    case Layout::kFp8Tiles:
      return Tiles(plan, "_scale_inv", DataType::kFloat);
    case Layout::kFp8Block:
      return Tiles(plan, "_scale", plan.type);
    case Layout::kInt8:
      return Rows(plan, "I8");
    case Layout::kFp8:
      return Rows(plan, "F8_E4M3");
    case Layout::kInt8Tensor:
      return OneScale(plan, "I8");
    case Layout::kFp8Tensor:
      return OneScale(plan, "F8_E4M3");
    case Layout::kNvfp4:
      return Fp4(plan, 16, "F8_E4M3");
    case Layout::kMxfp4:
      return Fp4(plan, 32, "U8");
    case Layout::kBnbInt8:
      return BnbInt8(plan);
    default:
      return info.family == LayoutFamily::kBitsAndBytes ? Bnb4(plan, facts) : Int4(plan);
  }
}

}  // namespace quantd
