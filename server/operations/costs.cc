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
constexpr Row kEmbeddings = {0.5, 11, 25};  // a vector in place of a scale
constexpr double kOneByOne = 150;           // the same, unless the vectors are FLOAT and only coded
constexpr double kLength = 1.5;             // for the length of its vector, before the first code
constexpr double kValue = 12;               // in values, which are encoded one by one
constexpr double kScalar = 25;              // an element, without vector instructions

double Elements(const TensorView& tensor) {
  return static_cast<double>(tensor.bytes.size()) * 8 / Info(tensor.data_type).bits;
}

double Scales(const TensorView& scale, const std::optional<TensorView>& zero_point) {
  return Elements(scale) + (zero_point.has_value() ? Elements(*zero_point) : 0);
}

// In how many parts of this length the elements come.
double Parts(const TensorView& tensor, int64_t length) {
  return length > 0 ? Elements(tensor) / static_cast<double>(length) : 0;
}

template <typename Parameters>
double Nanoseconds(const Row& row, const Parameters& request, double scales) {
  double element = row.element;
  if constexpr (requires { request.report_error; }) {
    element += request.report_error ? row.report : 0;
  }
  return Elements(request.x) * element + scales * row.scale;
}

double Nanoseconds(const QuantizeParameters& request) {
  return Nanoseconds(kQuantize, request, Scales(request.scale, request.zero_point));
}

double Nanoseconds(const DequantizeParameters& request) {
  return Nanoseconds(kDequantize, request, Scales(request.scale, request.zero_point));
}

double Nanoseconds(const DynamicQuantizeParameters& request) {
  const Granularity& granularity = request.granularity;
  int64_t block = granularity.block_size;
  if (!granularity.block_shape.empty()) block = granularity.block_shape.back();
  return Nanoseconds(kDynamicQuantize, request, Parts(request.x, block));
}

double Nanoseconds(const QuantizeEmbeddingsParameters& request) {
  const bool lengths = request.normalize || request.recipe == EmbeddingRecipe::kDirection;
  const bool in_place =
      !lengths && !request.report_error && request.x.data_type == DataType::kFloat;
  Row row = kEmbeddings;
  if (lengths) row.element += kLength;
  if (!in_place) row.scale = kOneByOne;
  return Nanoseconds(row, request,
                     Parts(request.x, request.x.shape.empty() ? 0 : request.x.shape.back()));
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
