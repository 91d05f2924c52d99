#include "server/wire/decode.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/wire/convert.h"
#include "server/wire/fields.h"
#include "server/wire/scan.h"

namespace quantd::wire {
namespace {

absl::Status Malformed(absl::string_view message_name) {
  return absl::InvalidArgumentError(
      absl::StrCat("the message is truncated or not a quantd.v1.", message_name));
}

// StreamRequest: id = 1, and the oneof.
constexpr uint32_t kIdField = 1;

// The case of the oneof that a field is, if it is one of it.
std::optional<Method> CaseOf(const Field& field) {
  constexpr uint32_t kFirst = 2;  // quantize, dequantize, dynamic_quantize
  if (field.type != WireType::kBytes) return std::nullopt;
  if (field.number < kFirst || field.number >= kFirst + kMethods.size()) return std::nullopt;
  return kMethods[field.number - kFirst];
}

// The request inside of a stream's item. The case that comes last counts.
absl::StatusOr<Request> DecodeItemRequest(const SliceList& message) {
  std::optional<Method> method;
  RequestFields fields;
  Scanner scanner(message);
  Field field;
  while (scanner.Next(field)) {
    const std::optional<Method> next = CaseOf(field);
    if (!next.has_value()) continue;
    if (next != method) fields = RequestFields();
    method = next;
    if (!ReadRequest(*method, scanner.Payload(), fields)) return Malformed("StreamRequest");
  }
  if (!scanner.ok()) return Malformed("StreamRequest");
  if (!method.has_value()) {
    return FieldError("request", "none of quantize, dequantize and dynamic_quantize is set");
  }
  return ConvertRequest(*method, std::move(fields));
}

}  // namespace

absl::StatusOr<Request> DecodeRequest(Method method, const SliceList& message) {
  RequestFields fields;
  if (!ReadRequest(method, Scanner(message), fields)) {
    return Malformed(absl::StrCat(Name(method), "Request"));
  }
  return ConvertRequest(method, std::move(fields));
}

StreamItem DecodeStreamItem(const SliceList& message) {
  StreamItem item;
  // First what tells whose item it is, wherever in the message that stands: the error of a bad
  // request should find its way back too.
  Scanner scanner(message);
  Field field;
  while (scanner.Next(field)) {
    if (field.Is(kIdField, WireType::kVarint)) item.id = field.value;
    const std::optional<Method> method = CaseOf(field);
    if (method.has_value()) item.method = method;
  }
  item.request = DecodeItemRequest(message);
  return item;
}

}  // namespace quantd::wire
