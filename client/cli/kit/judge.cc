#include "kit/judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "quantd/data_type.h"

namespace quantd::cli {
namespace {

// Bits of an element in raw_data, and the masks for NaN: codes whose magnitude is more than
// `infinity` (for FNUZ: the one code `nan`). 0: the type has no NaN.
struct Format {
  int bits;
  uint32_t magnitude = 0, infinity = 0, nan = 0;
  bool small = false;
};

Format FormatOf(v1::DataType type) {
  const DataTypeInfo* info = FindDataType(type);
  const int bits = info == nullptr ? 8 : info->bits;
  switch (type) {
    case v1::DATA_TYPE_FLOAT:
      return {bits, 0x7FFFFFFF, 0x7F800000};
    case v1::DATA_TYPE_FLOAT16:
      return {bits, 0x7FFF, 0x7C00};
    case v1::DATA_TYPE_BFLOAT16:
      return {bits, 0x7FFF, 0x7F80};
    case v1::DATA_TYPE_FLOAT8E4M3FN:
      return {bits, 0x7F, 0x7E, 0, true};
    case v1::DATA_TYPE_FLOAT8E5M2:
      return {bits, 0x7F, 0x7C, 0, true};
    case v1::DATA_TYPE_FLOAT8E4M3FNUZ:
    case v1::DATA_TYPE_FLOAT8E5M2FNUZ:
      return {bits, 0, 0, 0x80, true};
    default:
      return {bits};
  }
}

// An element's code: `bits` bits of the little-endian bit string.
uint32_t CodeAt(absl::string_view bytes, const Format& format, size_t index) {
  uint32_t code = 0;
  for (int bit = 0; bit < format.bits; ++bit) {
    const size_t at = index * format.bits + bit;
    if (at / 8 >= bytes.size()) break;
    const uint32_t one = static_cast<uint8_t>(bytes[at / 8]) >> (at % 8) & 1;
    code |= one << bit;
  }
  return code;
}

bool IsNan(uint32_t code, const Format& format) {
  if (format.nan != 0) return code == format.nan;
  return format.infinity != 0 && (code & format.magnitude) > format.infinity;
}

std::string Shape(const v1::Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.shape(), ", "), "]");
}

std::string TensorDifference(const v1::Tensor& found, const v1::Tensor& wanted, bool exact_nan) {
  if (found.data_type() != wanted.data_type()) {
    return absl::StrCat("is ", v1::DataType_Name(found.data_type()), ", must be ",
                        v1::DataType_Name(wanted.data_type()));
  }
  if (!std::equal(found.shape().begin(), found.shape().end(), wanted.shape().begin(),
                  wanted.shape().end())) {
    return absl::StrCat("has shape ", Shape(found), ", must have ", Shape(wanted));
  }
  const std::string& ours = found.raw_data();
  const std::string& theirs = wanted.raw_data();
  if (ours == theirs) return "";
  if (ours.size() != theirs.size()) {
    return absl::StrCat("has ", ours.size(), " bytes, must have ", theirs.size());
  }
  const Format format = FormatOf(wanted.data_type());
  const bool nans_alike = !(format.small && exact_nan);
  size_t count = 0, first = 0;
  const size_t elements = theirs.size() * 8 / format.bits;
  for (size_t i = 0; i < elements; ++i) {
    const uint32_t one = CodeAt(ours, format, i), other = CodeAt(theirs, format, i);
    if (one == other || (nans_alike && IsNan(one, format) && IsNan(other, format))) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return "";
  const int digits = (format.bits + 3) / 4;
  return absl::StrFormat("%d of %d elements, first %d: got code %0*X, must be %0*X", count,
                         elements, first, digits, CodeAt(ours, format, first), digits,
                         CodeAt(theirs, format, first));
}

template <typename Value>
void CompareCount(absl::string_view name, const std::optional<Value>& found,
                  const std::optional<Value>& wanted, std::string* text) {
  if (wanted && found && *found != *wanted) {
    absl::StrAppend(text, name, " is ", *found, ", must be ", *wanted, "; ");
  }
}

// Decibels may differ by a millionth of the ratio, other figures by a millionth of their value.
void CompareFigure(absl::string_view name, const std::optional<double>& found,
                   const std::optional<double>& wanted, double least, std::string* text) {
  if (!wanted || !found) return;
  const double scale = std::max({std::fabs(*found), std::fabs(*wanted), least});
  if (!(std::fabs(*found - *wanted) <= 1e-6 * scale)) {
    absl::StrAppend(text, name, " is ", *found, ", must be ", *wanted, "; ");
  }
}

void Take(const v1::QuantizationError& error, ReportFigures* figures) {
  figures->saturated_elements = error.saturated_elements();
  figures->non_finite_elements = error.non_finite_elements();
  figures->mean_squared_error = error.mean_squared_error();
  figures->max_absolute_error = error.max_absolute_error();
  figures->sqnr_db = error.sqnr_db();
}

void TakeTensors(v1::DynamicQuantizeResponse& response, KitAnswer* answer) {
  answer->tensors["y_scale"] = std::move(*response.mutable_y_scale());
  if (response.has_y_zero_point()) {
    answer->tensors["y_zero_point"] = std::move(*response.mutable_y_zero_point());
  }
  if (response.has_y_tensor_scale()) {
    answer->tensors["y_tensor_scale"] = std::move(*response.mutable_y_tensor_scale());
  }
}
template <typename Response>
void TakeTensors(Response& /*response*/, KitAnswer* /*answer*/) {}

template <typename Response>
absl::StatusOr<KitAnswer> AnswerOf(absl::StatusOr<Response> response) {
  KitAnswer answer;
  if (absl::IsInvalidArgument(response.status())) {
    answer.refused = true;
    return answer;
  }
  if (!response.ok()) return response.status();
  answer.tensors["y"] = std::move(*response->mutable_y());
  TakeTensors(*response, &answer);
  if constexpr (!std::is_same_v<Response, v1::DequantizeResponse>) {
    if (response->has_quantization_error()) Take(response->quantization_error(), &answer.report);
  }
  return answer;
}

}  // namespace

absl::StatusOr<KitAnswer> Ask(const KitCase& kit_case, client::Client& server) {
  return std::visit([&](const auto& request) { return AnswerOf(server.Call(request)); },
                    *kit_case.request);
}

std::string Difference(const KitAnswer& found, const KitAnswer& wanted, bool exact_nan) {
  if (found.refused != wanted.refused) return found.refused ? "was refused" : "must be refused";
  std::string text;
  for (const auto& [name, tensor] : wanted.tensors) {
    const auto ours = found.tensors.find(name);
    const std::string why = ours == found.tensors.end()
                                ? "is missing"
                                : TensorDifference(ours->second, tensor, exact_nan);
    if (!why.empty()) absl::StrAppend(&text, name, " ", why, "; ");
  }
  const ReportFigures &ours = found.report, &theirs = wanted.report;
  CompareCount("saturated_elements", ours.saturated_elements, theirs.saturated_elements, &text);
  CompareCount("non_finite_elements", ours.non_finite_elements, theirs.non_finite_elements, &text);
  CompareFigure("mean_squared_error", ours.mean_squared_error, theirs.mean_squared_error, 0, &text);
  CompareFigure("max_absolute_error", ours.max_absolute_error, theirs.max_absolute_error, 0, &text);
  CompareFigure("sqnr_db", ours.sqnr_db, theirs.sqnr_db, 1, &text);
  return text.substr(0, text.size() - std::min<size_t>(text.size(), 2));
}

KitOutcome Judge(const KitCase& kit_case, const KitAnswer& found, bool exact) {
  KitOutcome outcome;
  if (kit_case.open && !exact) {
    for (const KitAnswer& known : kit_case.wanted) {
      if (Difference(found, known, /*exact_nan=*/true).empty()) {
        outcome.answer = known.name;
        break;
      }
    }
    return outcome;
  }
  outcome.why = Difference(found, kit_case.wanted.front(), exact);
  outcome.passed = outcome.why.empty();
  return outcome;
}

}  // namespace quantd::cli
