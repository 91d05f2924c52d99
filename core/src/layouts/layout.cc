// The table of layouts, the names of parts, and PlanWeight: checks whether a weight fits a layout.
#include "quantd/layout.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "layouts/geometry.h"
#include "quantd/field_error.h"

namespace quantd {
namespace {

using enum Layout;

constexpr LayoutInfo Row(Layout layout, absl::string_view name, LayoutFamily family,
                         int64_t columns_of) {
  return {layout, name, family, columns_of, true, -1, -1, 0, ""};
}
constexpr LayoutInfo Gguf(Layout layout, absl::string_view name, absl::string_view ggml_name,
                          int64_t block, int bytes, bool encodes, int ggml_type, int ggml_file) {
  return {layout, name,     LayoutFamily::kGguf, block, encodes, ggml_type, ggml_file,
          bytes,  ggml_name};
}

constexpr LayoutFamily kCt = LayoutFamily::kCompressedTensors;
constexpr LayoutFamily kBnb = LayoutFamily::kBitsAndBytes;
constexpr LayoutInfo kLayouts[] = {
    Row(kFp8Tiles, "fp8-tiles", LayoutFamily::kFp8Tiles, 1),
    Row(kInt8, "compressed-tensors:int8", kCt, 1),
    Row(kInt8Tensor, "compressed-tensors:int8-tensor", kCt, 1),
    Row(kInt4G128, "compressed-tensors:int4-g128", kCt, 128),
    Row(kInt4G32, "compressed-tensors:int4-g32", kCt, 32),
    Row(kInt4G128Asym, "compressed-tensors:int4-g128-asym", kCt, 128),
    Row(kInt4G32Asym, "compressed-tensors:int4-g32-asym", kCt, 32),
    Row(kFp8, "compressed-tensors:fp8", kCt, 1),
    Row(kFp8Tensor, "compressed-tensors:fp8-tensor", kCt, 1),
    Row(kFp8Block, "compressed-tensors:fp8-block", kCt, 1),
    Row(kNvfp4, "compressed-tensors:nvfp4", kCt, 16),
    Row(kMxfp4, "compressed-tensors:mxfp4", kCt, 32),
    // GGML's numbers of types and files.
    Gguf(kGgufF32, "gguf:f32", "F32", 1, 4, true, 0, 0),
    Gguf(kGgufF16, "gguf:f16", "F16", 1, 2, true, 1, 1),
    Gguf(kGgufBf16, "gguf:bf16", "BF16", 1, 2, true, 30, 32),
    Gguf(kGgufQ8_0, "gguf:q8_0", "Q8_0", 32, 34, true, 8, 7),
    Gguf(kGgufQ4_0, "gguf:q4_0", "Q4_0", 32, 18, true, 2, 2),
    Gguf(kGgufQ4_1, "gguf:q4_1", "Q4_1", 32, 20, true, 3, 3),
    Gguf(kGgufQ5_0, "gguf:q5_0", "Q5_0", 32, 22, true, 6, 8),
    Gguf(kGgufQ5_1, "gguf:q5_1", "Q5_1", 32, 24, true, 7, 9),
    Gguf(kGgufMxfp4, "gguf:mxfp4", "MXFP4", 32, 17, true, 39, 38),
    Gguf(kGgufQ2K, "gguf:q2_k", "Q2_K", 256, 84, false, 10, -1),
    Gguf(kGgufQ3K, "gguf:q3_k", "Q3_K", 256, 110, false, 11, -1),
    Gguf(kGgufQ4K, "gguf:q4_k", "Q4_K", 256, 144, false, 12, -1),
    Gguf(kGgufQ5K, "gguf:q5_k", "Q5_K", 256, 176, false, 13, -1),
    Gguf(kGgufQ6K, "gguf:q6_k", "Q6_K", 256, 210, false, 14, -1),
    Row(kBnbNf4, "bnb:nf4", kBnb, 1),
    Row(kBnbNf4Double, "bnb:nf4-double", kBnb, 1),
    Row(kBnbFp4, "bnb:fp4", kBnb, 1),
    Row(kBnbFp4Double, "bnb:fp4-double", kBnb, 1),
    Row(kBnbInt8, "bnb:int8", kBnb, 1),
};
static_assert([] {
  for (size_t i = 0; i < std::size(kLayouts); ++i) {
    if (static_cast<size_t>(kLayouts[i].layout) != i) return false;
  }
  return true;
}());

// Ensures that no size of a part overflows: it takes at most 4 bytes per element and 1,200 more.
constexpr int64_t kMostElements = int64_t{1} << 59;

bool IsFloat(DataType type) {
  return type == DataType::kFloat || type == DataType::kFloat16 || type == DataType::kBfloat16;
}

// Layouts that do not depend on rows.
bool TakesAnyRank(Layout layout) {
  const LayoutInfo& info = Info(layout);
  return info.family == LayoutFamily::kGguf ||
         (info.family == LayoutFamily::kBitsAndBytes && layout != Layout::kBnbInt8);
}

}  // namespace

absl::Span<const LayoutInfo> AllLayouts() { return kLayouts; }

const LayoutInfo& Info(Layout layout) { return kLayouts[static_cast<size_t>(layout)]; }

const LayoutInfo* FindLayout(absl::string_view name) {
  for (const LayoutInfo& info : kLayouts) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

const LayoutInfo* FindGgmlType(int ggml_type) {
  for (const LayoutInfo& info : kLayouts) {
    if (info.family == LayoutFamily::kGguf && info.ggml_type == ggml_type) return &info;
  }
  return nullptr;
}

std::string PartName(absl::string_view weight, const LayoutPart& part) {
  constexpr absl::string_view kWeight = "weight";
  if (part.suffix != ".SCB") return absl::StrCat(weight, part.suffix);
  if (weight == kWeight) return std::string(part.suffix.substr(1));
  if (absl::EndsWith(weight, ".weight")) weight.remove_suffix(kWeight.size() + 1);
  return absl::StrCat(weight, part.suffix);
}

absl::StatusOr<WeightPlan> PlanWeight(const WeightRequest& request) {
  if (!IsFloat(request.type)) {
    return FieldError("type", absl::StrCat("type is ", Name(request.type),
                                           ", layouts are made of FLOAT, FLOAT16 and BFLOAT16"));
  }
  const absl::StatusOr<int64_t> elements = ElementCount(request.shape, "shape");
  if (!elements.ok()) return elements.status();
  const LayoutInfo& info = Info(request.layout);
  const size_t rank = request.shape.size();
  if (rank != 2 && !TakesAnyRank(request.layout)) {
    return FieldError("shape", absl::StrCat("shape ", ShapeString(request.shape), " has ", rank,
                                            " dimensions, ", info.name, " takes 2"));
  }
  const bool floats = info.family == LayoutFamily::kGguf && info.columns_of == 1;
  if (*elements == 0 && !floats) {
    return FieldError("shape", absl::StrCat("shape ", ShapeString(request.shape),
                                            " has 0 elements, ", info.name, " takes 1 or more"));
  }
  if (*elements > kMostElements) {
    return FieldError("shape", absl::StrCat("shape ", ShapeString(request.shape), " has ",
                                            *elements, " elements, at most 2^59 are supported"));
  }
  WeightPlan plan;
  plan.layout = request.layout;
  plan.type = request.type;
  plan.shape = request.shape;
  plan.elements = *elements;
  plan.columns = rank == 0 ? 1 : request.shape.back();
  plan.rows = plan.columns == 0 ? 0 : *elements / plan.columns;
  plan.weight_bytes = ByteSize(request.type, *elements);
  if (plan.columns % info.columns_of != 0) {
    return FieldError("shape", absl::StrCat("shape ", ShapeString(request.shape), " has ",
                                            plan.columns, " columns, no multiple of ",
                                            info.columns_of, " as ", info.name, " needs"));
  }
  return plan;
}

bool NeedsFacts(Layout layout) {
  switch (layout) {
    case Layout::kInt8Tensor:
    case Layout::kFp8Tensor:
    case Layout::kNvfp4:
    case Layout::kBnbNf4Double:
    case Layout::kBnbFp4Double:
      return true;
    default:
      return false;
  }
}

bool SharesFacts(Layout layout) { return layout == Layout::kNvfp4; }

std::vector<LayoutPart> WeightParts(const WeightPlan& plan, const WeightFacts& facts) {
  std::vector<LayoutPart> parts;
  for (PartGeometry& part : GeometryOf(plan, facts).parts) {
    parts.push_back({part.suffix, part.dtype, std::move(part.shape), part.bytes});
  }
  return parts;
}

}  // namespace quantd
