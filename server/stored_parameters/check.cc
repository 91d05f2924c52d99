// If a plan can be made for an x without elements, it detects the errors, so that sets follow
// exactly the same rules as requests.
#include "server/stored_parameters/check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "quantd/plan.h"
#include "quantd/quantize.h"
#include "quantd/quantize_embeddings.h"

namespace quantd::stored_parameters {
namespace {

// Plans allocate columns for the contents of a set; for larger sets that is not worth the memory.
constexpr int64_t kMostPlanned = 1 << 20;

absl::Status CheckTensor(absl::string_view name, const TensorView& tensor, int64_t* elements) {
  const absl::StatusOr<int64_t> count = ElementCount(tensor.shape, absl::StrCat(name, ".shape"));
  if (!count.ok()) return count.status();
  *elements = *count;
  const uint64_t bytes = ByteSize(tensor.data_type, *count);
  if (tensor.bytes.size() == bytes) return absl::OkStatus();
  const std::string field = absl::StrCat(name, ".raw_data");
  return FieldError(
      field, absl::StrCat(field, " has ", tensor.bytes.size(), " bytes, ", Name(tensor.data_type),
                          " of shape ", ShapeString(tensor.shape), " takes ", bytes));
}

// An x without elements that matches a scale per tensor or per axis.
TensorView EmptyX(const QuantizeParameters& parameters) {
  const int64_t axis = parameters.granularity.axis.value_or(1);
  // The plan refuses an axis that no x can have; nothing is computed from it.
  const bool possible = axis >= -kMaxRank && axis < kMaxRank;
  const int64_t rank =
      possible ? std::max<int64_t>(axis < 0 ? -axis : axis + 1, 2) : int64_t{kMaxRank};
  TensorView x;
  x.data_type = DataType::kFloat;
  x.shape = Shape(static_cast<size_t>(rank), 0);
  if (parameters.scale.shape.size() == 1 && possible) {
    x.shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = parameters.scale.shape[0];
  }
  return x;
}

}  // namespace

absl::Status Check(const v1::QuantizeRequest& message, const QuantizeParameters& parameters) {
  int64_t scales = 0;
  int64_t zero_points = 0;
  if (message.has_scale()) {
    const absl::Status status = CheckTensor("scale", parameters.scale, &scales);
    if (!status.ok()) return status;
  }
  if (message.has_zero_point()) {
    const absl::Status status = CheckTensor("zero_point", *parameters.zero_point, &zero_points);
    if (!status.ok()) return status;
  }
  const Granularity& granularity = parameters.granularity;
  const bool plain = granularity.block_size == 0 && granularity.block_shape.empty();
  if (!message.has_scale() || parameters.scale.shape.size() > 1 || !plain ||
      std::max(scales, zero_points) > kMostPlanned) {
    return absl::OkStatus();
  }
  QuantizeParameters empty = parameters;
  empty.x = EmptyX(parameters);
  return PlanQuantize(empty).status();
}

absl::Status Check(const v1::QuantizeEmbeddingsRequest& message,
                   const QuantizeEmbeddingsParameters& parameters) {
  int64_t values = 0;
  if (message.has_ranges()) {
    const absl::Status status = CheckTensor("ranges", *parameters.ranges, &values);
    if (!status.ok()) return status;
  }
  const bool whole = parameters.recipe != EmbeddingRecipe::kUnspecified &&
                     (parameters.recipe != EmbeddingRecipe::kRanges || message.has_ranges());
  if (!whole || values > kMostPlanned) return absl::OkStatus();
  int64_t dimensions = std::max<int64_t>(parameters.dimensions, 1);
  if (message.has_ranges() && parameters.ranges->shape.size() == 2) {
    dimensions = std::max(dimensions, parameters.ranges->shape[1]);
  }
  QuantizeEmbeddingsParameters empty = parameters;
  empty.x.data_type = DataType::kFloat;
  empty.x.shape = {0, dimensions};
  return PlanQuantizeEmbeddings(empty).status();
}

}  // namespace quantd::stored_parameters
