// PlanQuantizeEmbeddings: determines the used values of an embedding, and the divisors of RANGES.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "plan/operands.h"
#include "quantd/field_error.h"
#include "quantd/quantize_embeddings.h"
#include "rules/embeddings.h"

namespace quantd {
namespace {

constexpr DataType kEmbeddingInputTypes[] = {DataType::kFloat, DataType::kFloat16,
                                             DataType::kBfloat16};
constexpr DataType kBytes[] = {DataType::kUint8, DataType::kInt8};
constexpr DataType kSigned[] = {DataType::kInt8};

absl::string_view NameOf(EmbeddingRecipe recipe) {
  switch (recipe) {
    case EmbeddingRecipe::kRanges:
      return "RANGES";
    case EmbeddingRecipe::kUnit:
      return "UNIT";
    case EmbeddingRecipe::kDirection:
      return "DIRECTION";
    case EmbeddingRecipe::kBits:
      return "BITS";
    default:
      return "UNSPECIFIED";
  }
}

bool HasBothSigns(EmbeddingRecipe recipe) {
  return recipe == EmbeddingRecipe::kRanges || recipe == EmbeddingRecipe::kBits;
}

absl::StatusOr<DataType> OutputType(const QuantizeEmbeddingsParameters& parameters) {
  const EmbeddingRecipe recipe = parameters.recipe;
  if (parameters.output_type == DataType::kUnspecified) {
    return HasBothSigns(recipe) ? DataType::kUint8 : DataType::kInt8;
  }
  const auto allowed = HasBothSigns(recipe) ? absl::MakeConstSpan(kBytes) : kSigned;
  absl::Status status = CheckType(parameters.output_type, "output_type",
                                  absl::StrCat(NameOf(recipe), " gives"), allowed);
  if (!status.ok()) return status;
  return parameters.output_type;
}

// Refuses fields that are set and have no meaning for the recipe.
absl::Status CheckSwitches(const QuantizeEmbeddingsParameters& parameters, DataType output_type) {
  const absl::string_view recipe = NameOf(parameters.recipe);
  if (parameters.recipe == EmbeddingRecipe::kBits) {
    if (parameters.report_error) {
      return FieldError("report_error",
                        "report_error is set, recipe is BITS: bits have no inverse to report on");
    }
    if (parameters.signed_bits != SignedBits::kUnspecified && output_type == DataType::kUint8) {
      return FieldError("signed_bits",
                        "signed_bits is set, the output is UINT8: it is for BITS to INT8");
    }
    return absl::OkStatus();
  }
  const auto not_for = [recipe](absl::string_view field) {
    return FieldError(field,
                      absl::StrCat(field, " is set, recipe is ", recipe, ": it is for BITS"));
  };
  if (parameters.bit_order != BitOrder::kUnspecified) return not_for("bit_order");
  if (parameters.bit_threshold != BitThreshold::kUnspecified) return not_for("bit_threshold");
  if (parameters.signed_bits != SignedBits::kUnspecified) return not_for("signed_bits");
  return absl::OkStatus();
}

absl::Status SetShape(const QuantizeEmbeddingsParameters& parameters,
                      QuantizeEmbeddingsPlan& plan) {
  if (plan.shape.empty()) {
    return FieldError("x", "x has 0 dimensions, embeddings have at least 1: their values");
  }
  plan.width = plan.shape.back();
  if (parameters.dimensions < 0) {
    return FieldError("dimensions", absl::StrCat("dimensions is ", parameters.dimensions,
                                                 ", it is 0 (all) or more"));
  }
  if (parameters.dimensions > plan.width) {
    return FieldError("dimensions", absl::StrCat("dimensions is ", parameters.dimensions,
                                                 ", the last dimension of x has ", plan.width));
  }
  plan.dimensions = parameters.dimensions == 0 ? plan.width : parameters.dimensions;
  plan.row_bytes = plan.recipe == EmbeddingRecipe::kBits
                       ? plan.dimensions / 8 + (plan.dimensions % 8 != 0)
                       : plan.dimensions;
  // Without elements no row has any byte, but the number of rows may be anything.
  plan.rows = plan.elements == 0 ? 0 : plan.elements / plan.width;
  plan.output_shape = plan.shape;
  plan.output_shape.back() = plan.row_bytes;
  plan.output_elements = plan.rows * plan.row_bytes;
  plan.output_bytes = static_cast<uint64_t>(plan.output_elements);
  return absl::OkStatus();
}

// Whether low and high are a valid range. If their difference is finite, so are they.
bool IsRange(float low, float high) {
  const float width = high - low;
  return (width >= 0) & (width < std::numeric_limits<float>::infinity());
}
// Why the range is invalid.
std::string WhatIsWrong(float low, float high, int64_t i) {
  if (!std::isfinite(low))
    return absl::StrCat("ranges[0, ", i, "] is ", low, ", ranges are finite");
  if (!std::isfinite(high)) {
    return absl::StrCat("ranges[1, ", i, "] is ", high, ", ranges are finite");
  }
  if (low > high) {
    return absl::StrCat("ranges[0, ", i, "] is ", low, ", ranges[1, ", i, "] is ", high,
                        ": the first row has the lowest values");
  }
  return absl::StrCat("ranges[0, ", i, "] is ", low, ", ranges[1, ", i, "] is ", high,
                      ": their difference overflows");
}

// Columns that are read once per few rows, aligned so that no vector crosses a cache line.
std::shared_ptr<float[]> AlignedFloats(size_t size) {
  constexpr std::align_val_t kLine{64};
  return {static_cast<float*>(::operator new(size * sizeof(float), kLine)),
          [](float* floats) { ::operator delete(floats, kLine); }};
}

absl::Status ReadRanges(const QuantizeEmbeddingsParameters& parameters,
                        QuantizeEmbeddingsPlan& plan) {
  if (plan.recipe != EmbeddingRecipe::kRanges) {
    if (!parameters.ranges.has_value()) return absl::OkStatus();
    return FieldError("ranges", absl::StrCat("ranges are set, recipe is ", NameOf(plan.recipe),
                                             ": they are for RANGES"));
  }
  if (!parameters.ranges.has_value()) {
    return FieldError("ranges",
                      absl::StrCat("ranges are required, recipe is RANGES: FLOAT of shape "
                                   "[2, ",
                                   plan.dimensions, "]"));
  }
  const TensorView& ranges = *parameters.ranges;
  constexpr DataType kFloats[] = {DataType::kFloat};
  absl::Status status = CheckType(ranges.data_type, "ranges", "RANGES takes", kFloats);
  if (!status.ok()) return status;
  if (ranges.shape != Shape{2, plan.dimensions}) {
    return FieldError(
        "ranges", absl::StrCat("ranges have shape ", ShapeString(ranges.shape), ", must have [2, ",
                               plan.dimensions, "]: ", plan.dimensions,
                               " values of each embedding are used"));
  }
  const absl::StatusOr<int64_t> count = CheckTensor(ranges, "ranges");
  if (!count.ok()) return count.status();
  const auto size = static_cast<size_t>(plan.dimensions);
  std::shared_ptr<float[]> lows = AlignedFloats(size);
  std::shared_ptr<float[]> steps = AlignedFloats(size);  // initially the highest values
  std::shared_ptr<float[]> factors = AlignedFloats(size);
  const size_t row = size * sizeof(float);
  if (row > 0) {
    std::memcpy(lows.get(), ranges.bytes.data(), row);
    std::memcpy(steps.get(), ranges.bytes.data() + row, row);
  }
  // Without a branch, so that compilers vectorise it: the error is located afterwards.
  uint32_t wrong = 0, without_factor = 0;
  for (size_t i = 0; i < size; ++i) {
    wrong |= !IsRange(lows[i], steps[i]);
    steps[i] = rules::RangeStep(lows[i], steps[i]);
    factors[i] = MakeFactor(steps[i]);
    without_factor |= !HasFactor(steps[i]);
  }
  for (size_t i = 0; wrong != 0 && i < size; ++i) {
    float high;
    std::memcpy(&high, ranges.bytes.data() + row + i * sizeof(high), sizeof(high));
    if (IsRange(lows[i], high)) continue;
    return FieldError("ranges", WhatIsWrong(lows[i], high, static_cast<int64_t>(i)));
  }
  plan.lows = FloatColumn(std::move(lows), size);
  plan.steps = FloatColumn(std::move(steps), size);
  if (without_factor == 0) plan.factors = FloatColumn(std::move(factors), size);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<QuantizeEmbeddingsPlan> PlanQuantizeEmbeddings(
    const QuantizeEmbeddingsParameters& parameters) {
  QuantizeEmbeddingsPlan plan;
  absl::Status status =
      CheckType(parameters.x.data_type, "x", "QuantizeEmbeddings takes", kEmbeddingInputTypes);
  if (!status.ok()) return status;
  if (parameters.recipe == EmbeddingRecipe::kUnspecified) {
    return FieldError("recipe",
                      "recipe is unset, it must be one of RANGES, UNIT, DIRECTION and BITS");
  }
  const absl::StatusOr<DataType> output_type = OutputType(parameters);
  if (!output_type.ok()) return output_type.status();
  status = CheckSwitches(parameters, *output_type);
  if (!status.ok()) return status;
  const absl::StatusOr<int64_t> elements = CheckTensor(parameters.x, "x");
  if (!elements.ok()) return elements.status();
  plan.input_type = parameters.x.data_type;
  plan.output_type = *output_type;
  plan.shape = parameters.x.shape;
  plan.elements = *elements;
  plan.input_bytes = ByteSize(plan.input_type, plan.elements);
  plan.recipe = parameters.recipe;
  plan.normalize = parameters.normalize;
  plan.lsb_first = parameters.bit_order == BitOrder::kLsbFirst;
  plan.greater_or_equal = parameters.bit_threshold == BitThreshold::kGreaterOrEqual;
  plan.twos_complement = parameters.signed_bits == SignedBits::kTwosComplement;
  plan.non_finite = parameters.non_finite;
  plan.report_error = parameters.report_error;
  status = SetShape(parameters, plan);
  if (!status.ok()) return status;
  status = ReadRanges(parameters, plan);
  if (!status.ok()) return status;
  return plan;
}

}  // namespace quantd
