#include "commands/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "commands/terminal.h"
#include "files/element_type.h"
#include "files/text.h"

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

int64_t Elements(const TensorReport& report) {
  return ElementCount(report.shape, "shape").value_or(0);
}

std::string RatioText(uint64_t before, uint64_t after) {
  const double ratio = after == 0 ? 1 : static_cast<double>(before) / static_cast<double>(after);
  return absl::StrFormat("%.2f times %s", ratio >= 1 ? ratio : 1 / ratio,
                         ratio >= 1 ? "smaller" : "larger");
}

std::string ServerText(double seconds) {
  return seconds > 0 ? absl::StrCat(" (", SecondsText(seconds), " on the server)") : "";
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

std::string SqnrText(const QuantizationError& error, int64_t elements) {
  if (elements > 0 && error.non_finite_elements == static_cast<uint64_t>(elements)) return "none";
  return std::isinf(error.sqnr_db) ? "exact" : absl::StrFormat("%.2f dB", error.sqnr_db);
}

std::string ErrorText(const QuantizationError& error, int64_t elements) {
  const std::string sqnr = SqnrText(error, elements);
  std::string text =
      sqnr == "none" ? "none: no element is finite"
                     : absl::StrFormat("%s  (largest error %.4g, mean squared error %.4g)", sqnr,
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
    absl::StrAppend(&text, "  SQNR        ", ErrorText(*report.error, Elements(report)), "\n");
  }
  absl::StrAppend(&text, "  bytes       ", report.bytes_before, " -> ", report.bytes_after, "  (",
                  RatioText(report.bytes_before, report.bytes_after), ")\n");
  absl::StrAppend(&text, "  time        ", SecondsText(report.seconds),
                  ServerText(report.server_seconds), "\n");
  return text;
}

SortKey::SortKey(std::string name_of, uint64_t bytes_of,
                 const std::optional<QuantizationError>& error, int64_t elements)
    : name(std::move(name_of)),
      bytes(bytes_of),
      sqnr_db(std::numeric_limits<double>::infinity()),
      max_error(-1) {
  if (!error.has_value()) return;
  sqnr_db = SqnrText(*error, elements) == "none" ? -sqnr_db : error->sqnr_db;
  max_error = error->max_absolute_error;
}

bool Before(absl::string_view order, const SortKey& a, const SortKey& b) {
  if (order == "name") return a.name < b.name;
  if (order == "sqnr") return a.sqnr_db < b.sqnr_db;
  if (order == "error") return a.max_error > b.max_error;
  return order == "size" && a.bytes > b.bytes;
}

std::string ToText(std::vector<TensorReport> reports, absl::string_view order, bool details) {
  const auto key = [](const TensorReport& report) {
    return SortKey(report.name, report.bytes_before, report.error, Elements(report));
  };
  std::stable_sort(reports.begin(), reports.end(), [&](const auto& a, const auto& b) {
    return order != "file" && Before(order, key(a), key(b));
  });
  Table table({{"tensor"},
               {"type"},
               {"shape"},
               {"SQNR", true},
               {"max error", true},
               {"saturated", true},
               {"not finite", true},
               {"bytes", true},
               {"time", true},
               {"on the server", true}});
  const auto count = [](uint64_t number) { return number == 0 ? "" : absl::StrCat(number); };
  std::string text;
  TensorReport sum;
  for (const TensorReport& report : reports) {
    if (details) absl::StrAppend(&text, ToText(report));
    const QuantizationError error = report.error.value_or(QuantizationError());
    const bool known = report.error.has_value();
    table.Add({Printable(report.name),
               absl::StrCat(TypeName(report.input_type), " -> ", TypeName(report.output_type)),
               ShapeString(report.shape), known ? SqnrText(error, Elements(report)) : "",
               known ? absl::StrFormat("%.3g", error.max_absolute_error) : "",
               count(error.saturated_elements), count(error.non_finite_elements),
               absl::StrCat(BytesText(report.bytes_before), " -> ", BytesText(report.bytes_after)),
               SecondsText(report.seconds),
               report.server_seconds > 0 ? SecondsText(report.server_seconds) : ""});
    sum.bytes_before += report.bytes_before;
    sum.bytes_after += report.bytes_after;
    sum.seconds += report.seconds;
    sum.server_seconds += report.server_seconds;
    sum.file_seconds += report.file_seconds;
  }
  if (!details) text = table.ToText();
  absl::StrAppend(&text, reports.size(),
                  reports.size() == 1 ? " tensor: " : " tensors: ", BytesText(sum.bytes_before),
                  " -> ", BytesText(sum.bytes_after), " (",
                  RatioText(sum.bytes_before, sum.bytes_after), "); ", SecondsText(sum.seconds),
                  " of work", ServerText(sum.server_seconds), ", ", SecondsText(sum.file_seconds),
                  " of reading and writing\n");
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
  if (report.server_seconds > 0) json["server_seconds"] = report.server_seconds;
  json["file_seconds"] = report.file_seconds;
  return json;
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace quantd::cli
