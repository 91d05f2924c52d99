// A command's report about each tensor, as text and as JSON.
#ifndef QUANTD_CLI_COMMANDS_REPORT_H_
#define QUANTD_CLI_COMMANDS_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "quantd/data_type.h"
#include "quantd/quantization_error.h"
#include "quantd/shape.h"

namespace quantd::cli {

using Json = nlohmann::ordered_json;

// The minimum and maximum of many values.
struct Extent {
  uint64_t count = 0;  // 0: there are no values
  double minimum = 0, maximum = 0;
  void Add(double value);
};
// The extent of packed elements.
Extent ExtentOf(DataType type, const Shape& shape, absl::Span<const uint8_t> bytes);

// A tensor that was quantized or dequantized.
struct TensorReport {
  std::string name;
  DataType input_type = DataType::kUnspecified, output_type = DataType::kUnspecified;
  Shape shape;
  Shape scale_shape;
  Extent scale, zero_point, tensor_scale;
  std::optional<QuantizationError> error;
  uint64_t bytes_before = 0, bytes_after = 0;  // elements, scales and zero points
  double seconds = 0;
};

std::string ToText(const TensorReport& report);
// Infinite values (the SQNR of an exact result) become null, because JSON has no infinity.
Json ToJson(const TensorReport& report);
Json ShapeJson(const Shape& shape);
Json NumberJson(double value);

// The error of a quantized tensor as text, without the beginning of the line.
std::string ErrorText(const QuantizationError& error);

// A tensor that was not changed, and why.
struct SkippedTensor {
  std::string name;
  absl::string_view type;
  Shape shape;
  std::string reason;
};
std::string ToText(const SkippedTensor& tensor);
Json ToJson(const SkippedTensor& tensor);

// 3072000 as "3.07 MB".
std::string BytesText(uint64_t bytes);
// The JSON text; works even if a name in it is not UTF-8.
std::string Dump(const Json& json);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_REPORT_H_
