// A command's report about each tensor, as text and as JSON.
#ifndef QUANTD_CLI_COMMANDS_REPORT_H_
#define QUANTD_CLI_COMMANDS_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  double seconds = 0;                          // of computing, or of the call to the server
  double server_seconds = 0;  // of these, those of the server; the rest is the network's
  double file_seconds = 0;    // of reading the file, and of giving the output its memory
};

// Several lines.
std::string ToText(const TensorReport& report);
// Infinite values (the SQNR of an exact result) become null, because JSON has no infinity.
Json ToJson(const TensorReport& report);
Json ShapeJson(const Shape& shape);
Json NumberJson(double value);

// The error of a quantized tensor as text, without the beginning of the line.
std::string ErrorText(const QuantizationError& error, int64_t elements);
// "40.21 dB", "exact", or "none" if no element is finite.
std::string SqnrText(const QuantizationError& error, int64_t elements);

// What --sort compares.
struct SortKey {
  SortKey(std::string name_of, uint64_t bytes_of, const std::optional<QuantizationError>& error,
          int64_t elements);
  std::string name;
  uint64_t bytes;
  double sqnr_db, max_error;
};
// Whether `a` comes before `b`: by name, or the worst or largest first. `order`: of --sort.
bool Before(absl::string_view order, const SortKey& a, const SortKey& b);

// A row for each tensor in the order of --sort, or with --details ToText of each, and a line with
// their sum.
std::string ToText(std::vector<TensorReport> reports, absl::string_view order, bool details);

// A tensor that was not changed, and why.
struct SkippedTensor {
  std::string name;
  absl::string_view type;
  Shape shape;
  std::string reason;
};
std::string ToText(const SkippedTensor& tensor);
Json ToJson(const SkippedTensor& tensor);

// The JSON text; works even if a name in it is not UTF-8.
std::string Dump(const Json& json);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_REPORT_H_
