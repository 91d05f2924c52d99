#include "commands/report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "files/element_type.h"
#include "files/printable.h"

namespace quantd::cli {
namespace {

std::string ExtentText(const Extent& extent) {
  if (extent.count == 1) return absl::StrFormat("%.9g", extent.minimum);
  return absl::StrFormat("%.9g .. %.9g  (%d of them)", extent.minimum, extent.maximum,
                         extent.count);
}

Json ExtentJson(const Extent& extent) {
  return {{"count", extent.count},
          {"min", NumberJson(extent.minimum)},
          {"max", NumberJson(extent.maximum)}};
}

std::string SecondsText(double seconds) {
  return seconds < 1 ? absl::StrFormat("%.2f ms", seconds * 1e3)
                     : absl::StrFormat("%.2f s", seconds);
}

}  // namespace

void Extent::Add(double value) {
  minimum = count == 0 ? value : std::min(minimum, value);
  maximum = count == 0 ? value : std::max(maximum, value);
  ++count;
}

Extent ExtentOf(DataType type, const Shape& shape, absl::Span<const uint8_t> bytes) {
  constexpr int64_t kChunk = 1 << 16;
  Extent extent;
  const int64_t elements = ElementCount(shape, "shape").value_or(0);
  const int bits = Info(type).bits;
  for (int64_t first = 0; first < elements; first += kChunk) {
    const int64_t count = std::min(kChunk, elements - first);
    const auto part = bytes.subspan(first * bits / 8, (count * bits + 7) / 8);
    for (const double value : ToDoubles(ElementTypeOf(type), count, part)) extent.Add(value);
  }
  return extent;
}

std::string BytesText(uint64_t bytes) {
  const char* unit = "bytes";
  double value = static_cast<double>(bytes);
  for (const char* larger : {"kB", "MB", "GB", "TB"}) {
    if (value < 1000) break;
    value /= 1000;
    unit = larger;
  }
  return absl::StrFormat("%.*f %s", bytes < 1000 ? 0 : 2, value, unit);
}

std::string ErrorText(const QuantizationError& error) {
  std::string text = absl::StrFormat(
      "%s  (largest error %.4g, mean squared error %.4g)",
      std::isinf(error.sqnr_db) ? "exact" : absl::StrFormat("%.2f dB", error.sqnr_db),
      error.max_absolute_error, error.mean_squared_error);
  if (error.saturated_elements + error.non_finite_elements > 0) {
    absl::StrAppendFormat(&text, "; saturated %d elements, not finite %d", error.saturated_elements,
                          error.non_finite_elements);
  }
  return text;
}

std::string ToText(const SkippedTensor& tensor) {
  return absl::StrCat(Printable(tensor.name), "  ", tensor.type, " ", ShapeString(tensor.shape),
                      " ", Printable(tensor.reason), "\n");
}

Json ToJson(const SkippedTensor& tensor) {
  return {{"name", tensor.name},
          {"type", tensor.type},
          {"shape", ShapeJson(tensor.shape)},
          {"reason", tensor.reason}};
}

std::string ToText(const TensorReport& report) {
  std::string text =
      absl::StrFormat("%s  %s %s -> %s\n", Printable(report.name), TypeName(report.input_type),
                      ShapeString(report.shape), TypeName(report.output_type));
  if (report.scale.count > 0) {
    absl::StrAppend(&text, "  scale       ", ExtentText(report.scale), "\n");
  }
  if (report.tensor_scale.count > 0) {
    absl::StrAppend(&text, "  times       ", ExtentText(report.tensor_scale), "\n");
  }
  if (report.zero_point.count > 0) {
    absl::StrAppend(&text, "  zero point  ", ExtentText(report.zero_point), "\n");
  }
  if (report.error.has_value()) {
    absl::StrAppend(&text, "  SQNR        ", ErrorText(*report.error), "\n");
  }
  const double ratio = report.bytes_after == 0 ? 1
                                               : static_cast<double>(report.bytes_before) /
                                                     static_cast<double>(report.bytes_after);
  absl::StrAppendFormat(&text, "  bytes       %d -> %d  (%.2f times %s)\n", report.bytes_before,
                        report.bytes_after, ratio >= 1 ? ratio : 1 / ratio,
                        ratio >= 1 ? "smaller" : "larger");
  absl::StrAppend(&text, "  time        ", SecondsText(report.seconds), "\n");
  return text;
}

Json NumberJson(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ShapeJson(const Shape& shape) { return std::vector<int64_t>(shape.begin(), shape.end()); }

Json ToJson(const TensorReport& report) {
  Json json = {{"name", report.name},
               {"input_type", TypeName(report.input_type)},
               {"output_type", TypeName(report.output_type)},
               {"shape", ShapeJson(report.shape)}};
  if (report.scale.count > 0) {
    json["scale"] = ExtentJson(report.scale);
    json["scale"]["shape"] = ShapeJson(report.scale_shape);
  }
  if (report.zero_point.count > 0) json["zero_point"] = ExtentJson(report.zero_point);
  if (report.tensor_scale.count > 0) {
    json["tensor_scale"] = NumberJson(report.tensor_scale.minimum);
  }
  if (report.error.has_value()) {
    json["quantization_error"] = {
        {"sqnr_db", NumberJson(report.error->sqnr_db)},
        {"mean_squared_error", NumberJson(report.error->mean_squared_error)},
        {"max_absolute_error", NumberJson(report.error->max_absolute_error)},
        {"saturated_elements", report.error->saturated_elements},
        {"non_finite_elements", report.error->non_finite_elements}};
  }
  json["bytes_before"] = report.bytes_before;
  json["bytes_after"] = report.bytes_after;
  json["seconds"] = report.seconds;
  return json;
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace quantd::cli
