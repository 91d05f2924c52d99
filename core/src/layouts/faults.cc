#include "layouts/faults.h"

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"

namespace quantd {

bool Faults::FindNonFinite(const uint8_t* x, int64_t size, int64_t index) {
  const int64_t width = Info(plan_.type).bits / 8;
  for (int64_t i = 0; i < size; ++i) {
    if (std::isfinite(LoadElement(plan_.type, x + i * width))) continue;
    NonFinite(index + i);
    return true;
  }
  return false;
}

std::string Faults::Place(int64_t index) const {
  Shape place(plan_.shape.size());
  for (size_t d = place.size(); d-- > 0;) {
    place[d] = index % plan_.shape[d];
    index /= plan_.shape[d];
  }
  return ShapeString(place);
}

absl::Status Faults::Status(const ByteSource& weight) const {
  const bool non_finite = non_finite_.index() < plan_.elements;
  const int64_t index = non_finite ? non_finite_.index() : too_large_.index();
  if (index >= plan_.elements) return absl::OkStatus();
  const auto width = static_cast<size_t>(Info(plan_.type).bits / 8);
  std::array<uint8_t, 4> bytes = {};
  absl::Status read =
      weight.Read(static_cast<uint64_t>(index) * width, absl::MakeSpan(bytes.data(), width));
  if (!read.ok()) return read;
  const float value = LoadElement(plan_.type, bytes.data());
  if (non_finite) {
    const absl::string_view what = std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    return FieldError("weight", absl::StrCat(what, " at ", Place(index), ", ",
                                             Info(plan_.layout).name, " takes finite values"));
  }
  if (plan_.layout == Layout::kGgufF16 || plan_.layout == Layout::kBnbInt8) {
    return FieldError("weight", absl::StrCat(value, " at ", Place(index),
                                             " is too large for FLOAT16, which ends at 65504"));
  }
  const bool gguf = Info(plan_.layout).family == LayoutFamily::kGguf;
  return FieldError(
      "weight",
      absl::StrCat("the scale", gguf ? " or the minimum" : "", " of the block from ", Place(index),
                   " on is too large for ", gguf ? "FLOAT16" : Name(plan_.type)));
}

}  // namespace quantd
