// Makes a request from the names in a kit, by the contract's descriptors, so that new fields and
// enum values are supported at once.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kit/read_kit.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

namespace pb = ::google::protobuf;
using Json = nlohmann::json;

absl::Status Wrong(absl::string_view name, const Json& value) {
  return absl::InvalidArgumentError(absl::StrCat(
      "attribute ", name, " is ", value.dump(-1, ' ', false, Json::error_handler_t::replace),
      ", which is not one of its values"));
}

// The value of an enum by its name without the prefix, which is the prefix of its UNSPECIFIED.
const pb::EnumValueDescriptor* EnumValue(const pb::EnumDescriptor& type, const std::string& word) {
  const absl::string_view prefix = absl::StripSuffix(type.value(0)->name(), "UNSPECIFIED");
  return type.FindValueByName(absl::StrCat(prefix, word));
}

absl::Status Set(const pb::FieldDescriptor& field, const Json& value, pb::Message* message) {
  const pb::Reflection& to = *message->GetReflection();
  if (field.is_repeated() && field.cpp_type() == pb::FieldDescriptor::CPPTYPE_INT64) {
    if (!value.is_array()) return Wrong(field.name(), value);
    for (const Json& item : value) {
      if (!item.is_number_integer()) return Wrong(field.name(), value);
      to.AddInt64(message, &field, item.get<int64_t>());
    }
    return absl::OkStatus();
  }
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      if (!value.is_boolean()) return Wrong(field.name(), value);
      to.SetBool(message, &field, value.get<bool>());
      return absl::OkStatus();
    case pb::FieldDescriptor::CPPTYPE_INT64:
      if (!value.is_number_integer()) return Wrong(field.name(), value);
      to.SetInt64(message, &field, value.get<int64_t>());
      return absl::OkStatus();
    case pb::FieldDescriptor::CPPTYPE_ENUM: {
      const pb::EnumValueDescriptor* const found =
          value.is_string() ? EnumValue(*field.enum_type(), value.get<std::string>()) : nullptr;
      if (found == nullptr) return Wrong(field.name(), value);
      to.SetEnum(message, &field, found);
      return absl::OkStatus();
    }
    default:
      return Wrong(field.name(), value);
  }
}

}  // namespace

absl::Status SetAttributes(const Json& attributes, pb::Message* request) {
  if (!attributes.is_object()) {
    return absl::InvalidArgumentError("attributes is not an object");
  }
  for (const auto& [name, value] : attributes.items()) {
    const pb::FieldDescriptor* const field = request->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute ", name, " is not a field of ", request->GetTypeName()));
    }
    QUANTD_RETURN_IF_ERROR(Set(*field, value, request));
  }
  return absl::OkStatus();
}

bool IsOfLayouts(absl::string_view operation) {
  return operation == "encode_layout" || operation == "decode_layout";
}

absl::StatusOr<KitRequest> RequestOf(absl::string_view operation) {
  if (operation == "quantize") return KitRequest(v1::QuantizeRequest());
  if (operation == "dequantize") return KitRequest(v1::DequantizeRequest());
  if (operation == "dynamic_quantize") return KitRequest(v1::DynamicQuantizeRequest());
  if (operation == "quantize_embeddings") return KitRequest(v1::QuantizeEmbeddingsRequest());
  return absl::InvalidArgumentError(absl::StrCat("operation '", operation, "' is not known here"));
}

pb::Message* MessageOf(KitRequest* request) {
  return std::visit([](auto& message) -> pb::Message* { return &message; }, *request);
}

absl::StatusOr<v1::Tensor*> TensorField(absl::string_view name, pb::Message* request) {
  const pb::FieldDescriptor* const field =
      request->GetDescriptor()->FindFieldByName(std::string(name));
  if (field == nullptr || field->is_repeated() ||
      field->message_type() != v1::Tensor::descriptor()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", name, " is not a tensor of ", request->GetTypeName()));
  }
  return static_cast<v1::Tensor*>(request->GetReflection()->MutableMessage(request, field));
}

}  // namespace quantd::cli
