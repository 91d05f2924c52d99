// PlanWeight: checks whether a weight fits a layout.
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "layouts/geometry.h"
#include "quantd/field_error.h"

namespace quantd {
namespace {

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
