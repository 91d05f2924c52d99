#include "engine/dequantizing.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/slabs.h"
#include "files/element_type.h"

namespace quantd::cli {
namespace {

// What is dequantized at a time: small, and enough for every thread.
constexpr SlabLimits kLimits{1 << 20, 1 << 20};

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

absl::StatusOr<QuantizedParts> QuantizedParts::Of(const Source& x, const MethodFlags& flags,
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
    Engine& engine, const DequantizeParameters& quantized, const TensorView& x,
    absl::FunctionRef<void(absl::Span<const double> before, absl::Span<const double> after)>
        visit) {
  if (x.shape != quantized.x.shape) {
    return absl::InvalidArgumentError(absl::StrCat("it has shape ", ShapeString(quantized.x.shape),
                                                   ", the original ", ShapeString(x.shape)));
  }
  const std::optional<Shape> blocks =
      BlocksOfScales(x.shape, quantized.scale.shape, quantized.granularity);
  if (!blocks.has_value()) {
    for (const int64_t length : x.shape) {
      if (length == 0) return absl::OkStatus();
    }
    return absl::InvalidArgumentError("its scales do not fit its shape");
  }
  std::vector<float> floats;
  return ForEachSlab(x.shape, *blocks, kLimits, false, [&](const Slab& slab) {
    SlabRequest<DequantizeParameters> part(quantized, slab);
    part.parameters.output_type = DataType::kFloat;
    floats.resize(slab.elements);
    absl::Status status = engine.Dequantize(
        part.parameters,
        {reinterpret_cast<uint8_t*>(floats.data()), floats.size() * sizeof(float)});
    if (!status.ok()) return status;
    SlabPart original;
    const TensorView before = original.OfElements(x, slab);
    visit(ToDoubles(ElementTypeOf(x.data_type), slab.elements, BytesOf(before)),
          std::vector<double>(floats.begin(), floats.end()));
    return absl::OkStatus();
  });
}

}  // namespace quantd::cli
