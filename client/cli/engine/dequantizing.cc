#include "engine/dequantizing.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "files/element_type.h"
#include "quantd/dequantize.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

// Elements that are dequantized at a time: few, but enough for every thread.
constexpr int64_t kElements = 1 << 20;

}  // namespace

absl::StatusOr<TensorView> QuantizedParts::Add(const Source& source, const std::string& path) {
  auto owner = std::make_shared<std::pair<Source, OutputFile>>(std::piecewise_construct,
                                                               std::tuple(source), std::tuple());
  owners_.push_back(owner);
  return owner->first.View(path, &owner->second);
}

absl::StatusOr<QuantizedParts> QuantizedParts::Of(const QuantizedTensor& tensor,
                                                  const std::string& path) {
  QuantizedParts parts;
  DequantizeParameters& p = parts.parameters_;
  p.granularity = tensor.entry.granularity;
  absl::Status status;
  const auto add = [&](const Source& source) {
    absl::StatusOr<TensorView> view = parts.Add(source, path);
    status.Update(view.status());
    return std::move(view).value_or(TensorView());
  };
  p.x = add(tensor.y);
  p.scale = add(tensor.scale);
  if (tensor.zero_point.has_value()) p.zero_point = add(*tensor.zero_point);
  if (tensor.tensor_scale.has_value()) p.tensor_scale = add(*tensor.tensor_scale);
  if (!status.ok()) return status;
  return parts;
}

absl::StatusOr<QuantizedParts> QuantizedParts::Of(const Source& x, const SpecFlags& flags,
                                                  const std::string& path) {
  QuantizedParts parts;
  DequantizeParameters& p = parts.parameters_;
  p.granularity = flags.granularity();
  absl::StatusOr<TensorView> view = parts.Add(x, path);
  absl::Status status = view.status();
  if (view.ok()) p.x = *std::move(view);
  const auto add = [&](const std::string& text, absl::string_view flag, DataType type,
                       bool int32_allowed) -> std::optional<TensorView> {
    if (text.empty()) return std::nullopt;
    absl::StatusOr<Operand> operand = ParseOperand(text, flag, type, int32_allowed);
    status.Update(operand.status());
    if (!operand.ok()) return std::nullopt;
    parts.owners_.push_back(operand->owner);
    return operand->view;
  };
  p.scale = add(flags.scale, "scale", DataType::kFloat, true).value_or(TensorView());
  p.zero_point = add(flags.zero_point, "zero_point", x.type(), true);
  p.tensor_scale = add(flags.tensor_scale, "tensor_scale", DataType::kFloat, false);
  if (!status.ok()) return status;
  return parts;
}

absl::Status CompareWith(
    const Executor& executor, const DequantizeParameters& quantized, const TensorView& x,
    absl::FunctionRef<void(absl::Span<const double> before, absl::Span<const double> after)>
        visit) {
  if (x.shape != quantized.x.shape) {
    return absl::InvalidArgumentError(absl::StrCat("it has shape ", ShapeString(quantized.x.shape),
                                                   ", the original ", ShapeString(x.shape)));
  }
  DequantizeParameters request = quantized;
  request.output_type = DataType::kFloat;
  QUANTD_ASSIGN_OR_RETURN(const DequantizePlan plan, PlanDequantize(request));
  const int64_t bits = Info(x.data_type).bits;
  std::vector<float> floats;
  for (int64_t begin = 0; begin < plan.elements; begin += kElements) {
    const int64_t end = std::min(begin + kElements, plan.elements);
    floats.resize(end - begin);
    absl::Status status = DequantizeElements(
        plan, request.x.bytes, begin, end, executor, [] { return false; },
        {reinterpret_cast<uint8_t*>(floats.data()), floats.size() * sizeof(float)});
    if (!status.ok()) return status;
    visit(ToDoubles(ElementTypeOf(x.data_type), end - begin,
                    x.bytes.subspan(begin * bits / 8, (end - begin) * bits / 8)),
          std::vector<double>(floats.begin(), floats.end()));
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
