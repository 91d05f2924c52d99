#include "server/operations/operation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/operations/memory.h"
#include "server/operations/scratch_bytes.h"

namespace quantd::operations {
namespace {

// The maximum size of a protobuf message, minus some room for the envelope of a stream.
constexpr uint64_t kMaxResponseBytes = (uint64_t{1} << 31) - 1024;

// Each part of y prepares the scales along the last axis again.
constexpr uint64_t kFewScaleBytes = 16 << 10;

DynamicQuantizeOutput OutputOf(const wire::ResponseContents& contents) {
  return {contents.y, contents.y_scale, contents.y_zero_point, contents.y_tensor_scale};
}

}  // namespace

uint64_t Operation::output_bytes() const {
  uint64_t bytes = layout_.y.bytes;
  for (const auto* tensor : {&layout_.y_scale, &layout_.y_zero_point, &layout_.y_tensor_scale}) {
    if (tensor->has_value()) bytes += (*tensor)->bytes;
  }
  return bytes;
}

uint64_t Operation::memory_bytes() const {
  return wire::ResponseMemoryBytes(layout_) +
         ScratchBytes(static_cast<uint64_t>(BaseOf(plan_).layout.scale_count)) + other_bytes_;
}

absl::Status Operation::Execute(const Executor& executor, Interrupted interrupted,
                                wire::ResponseContents& contents) const {
  return quantd::Execute(plan_, x_, executor, interrupted, OutputOf(contents), &contents.error);
}

absl::Status Operation::ExecuteElements(int64_t begin, int64_t end, const Executor& executor,
                                        absl::Span<uint8_t> y) const {
  const auto never = [] { return false; };
  if (const auto* const plan = std::get_if<QuantizePlan>(&plan_)) {
    return QuantizeElements(*plan, x_, begin, end, executor, never, y);
  }
  return DequantizeElements(std::get<DequantizePlan>(plan_), x_, begin, end, executor, never, y);
}

bool HasElements(const wire::Request& request) {
  const auto few = [](const TensorView& scale) { return scale.bytes.size() <= kFewScaleBytes; };
  if (const auto* const quantize = std::get_if<QuantizeParameters>(&request.parameters)) {
    return !quantize->report_error && few(quantize->scale);
  }
  const auto* const dequantize = std::get_if<DequantizeParameters>(&request.parameters);
  return dequantize != nullptr && few(dequantize->scale);
}

absl::StatusOr<Operation> Plan(const wire::Request& request) {
  return std::visit(
      [&](const auto& parameters) -> absl::StatusOr<Operation> {
        absl::StatusOr<OperationPlan> plan = MakePlan(parameters);
        if (!plan.ok()) return plan.status();
        Operation operation;
        wire::ResponseLayout& layout = operation.layout_;
        static_cast<ResultLayout&>(layout) = LayoutOf(*plan);
        layout.method = request.method();
        layout.encoding = request.output_encoding;
        if (request.output.has_value()) {
          layout.output = request.output;
          if (request.output->byte_size < layout.y.bytes) {
            return FieldError("output.byte_size",
                              absl::StrCat("output.byte_size is ", request.output->byte_size,
                                           ", y takes ", layout.y.bytes, " bytes"));
          }
          layout.output->byte_size = layout.y.bytes;
        }
        operation.x_ = parameters.x.bytes;
        operation.other_bytes_ = PlanBytes(request);
        if (request.method() == wire::Method::kDynamicQuantize && request.x_is_shared()) {
          operation.other_bytes_ += OwnRangesBytes(
              static_cast<uint64_t>(BaseOf(*plan).layout.scale_count), parameters.x.bytes.size());
        }
        operation.plan_ = *std::move(plan);
        const uint64_t bytes = wire::MaxEncodedBytes(layout);
        if (bytes > kMaxResponseBytes) {
          return absl::ResourceExhaustedError(absl::StrCat("the response would take ", bytes,
                                                           " bytes, a message holds at most ",
                                                           kMaxResponseBytes));
        }
        return operation;
      },
      request.parameters);
}

}  // namespace quantd::operations
