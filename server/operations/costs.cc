#include "server/operations/costs.h"

#include <optional>
#include <variant>

#include "quantd/targets.h"

namespace quantd::operations {
namespace {

// Nanoseconds on a core with AVX-512, as the trailer quantd-timing-us says with --threads=1. A
// report reads codes back, and a scale costs as much as some elements.
struct Row {
  double element;
  double report;  // in addition
  double scale;
};
constexpr Row kQuantize = {0.8, 1.5, 2};
constexpr Row kDequantize = {0.6, 0, 2};
constexpr Row kDynamicQuantize = {0.9, 1.8, 8};
constexpr Row kEmbeddings = {0.5, 11, 0};
constexpr double kLength = 1.5;    // of a vector, which is needed before its first code
constexpr double kVector = 25;     // each
constexpr double kOneByOne = 150;  // the same, unless the vectors are FLOAT and only coded
constexpr double kValue = 12;      // in values, which are encoded one by one
constexpr double kScalar = 25;     // an element, without vector instructions

double Elements(const TensorView& tensor) {
  return static_cast<double>(tensor.bytes.size()) * 8 / Info(tensor.data_type).bits;
}

double Scales(const TensorView& scale, const std::optional<TensorView>& zero_point) {
  return Elements(scale) + (zero_point.has_value() ? Elements(*zero_point) : 0);
}

double Nanoseconds(const Row& row, double elements, bool report, double scales) {
  return elements * (row.element + (report ? row.report : 0)) + scales * row.scale;
}

double Nanoseconds(const QuantizeParameters& request) {
  return Nanoseconds(kQuantize, Elements(request.x), request.report_error,
                     Scales(request.scale, request.zero_point));
}

double Nanoseconds(const DequantizeParameters& request) {
  return Nanoseconds(kDequantize, Elements(request.x), false,
                     Scales(request.scale, request.zero_point));
}

double Nanoseconds(const DynamicQuantizeParameters& request) {
  const Granularity& granularity = request.granularity;
  int64_t block = granularity.block_size;
  if (!granularity.block_shape.empty()) block = granularity.block_shape.back();
  const double elements = Elements(request.x);
  return Nanoseconds(kDynamicQuantize, elements, request.report_error,
                     block > 0 ? elements / static_cast<double>(block) : 0);
}

double Nanoseconds(const QuantizeEmbeddingsParameters& request) {
  const double elements = Elements(request.x);
  const bool lengths = request.normalize || request.recipe == EmbeddingRecipe::kDirection;
  const bool in_place =
      !lengths && !request.report_error && request.x.data_type == DataType::kFloat;
  const int64_t width = request.x.shape.empty() ? 0 : request.x.shape.back();
  const double vectors = width > 0 ? elements / static_cast<double>(width) : 0;
  return Nanoseconds(kEmbeddings, elements, request.report_error, 0) +
         (lengths ? kLength * elements : 0) + vectors * (in_place ? kVector : kOneByOne);
}

}  // namespace

Cost CostOf(const wire::Request& request) {
  return std::visit(
      [&](const auto& parameters) {
        const double elements = Elements(parameters.x);
        double time = Nanoseconds(parameters);
        if (CurrentTarget() == "scalar") time += kScalar * elements;
        if (request.output_encoding == wire::Encoding::kValues) time += kValue * elements;
        uint64_t bytes = parameters.x.bytes.size();
        if (request.method() == wire::Method::kDequantize) {
          bytes += static_cast<uint64_t>(elements) * sizeof(float);
        }
        return Cost{bytes, std::chrono::nanoseconds(static_cast<int64_t>(time))};
      },
      request.parameters);
}

}  // namespace quantd::operations
