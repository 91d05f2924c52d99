#include "server/wire/stored_set.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"

namespace quantd::wire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status OtherKind(const StoredSet& set, absl::string_view method) {
  return FieldError("parameters", absl::StrCat("parameters is ", set.reference, ", a set of ",
                                               Info(KindOf(set.skeleton)).operation,
                                               ", which is not for ", method));
}

bool Has(const Message& message, const Reflection& reflection, const FieldDescriptor& field) {
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

// `stored` has the type of the request.
absl::Status Merge(const StoredSet& set, const Message& stored, Message& request, RawData& raw) {
  const Reflection& reflection = *stored.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(stored, &fields);
  for (const FieldDescriptor* field : fields) {
    if (Has(request, reflection, *field)) {
      return FieldError(field->name(),
                        absl::StrCat(field->name(), " is in the request and in ", set.reference,
                                     ": it must be in only one of them"));
    }
    const auto index = static_cast<size_t>(TensorFieldNamed(field->name()));
    if (index < kTensorFields) raw[index] = set.raw[index];
  }
  request.MergeFrom(stored);
  return absl::OkStatus();
}

}  // namespace

Method KindOf(const v1::ParameterSet& set) {
  switch (set.kind_case()) {
    case v1::ParameterSet::kQuantizeEmbeddings:
      return Method::kQuantizeEmbeddings;
    case v1::ParameterSet::kQuantize:
    case v1::ParameterSet::KIND_NOT_SET:
      break;
  }
  return Method::kQuantize;
}

absl::Status Complete(const StoredSet& set, v1::QuantizeRequest& request, RawData& raw) {
  if (!set.skeleton.has_quantize()) return OtherKind(set, "Quantize");
  return Merge(set, set.skeleton.quantize(), request, raw);
}

absl::Status Complete(const StoredSet& set, v1::DequantizeRequest& request, RawData& raw) {
  if (!set.skeleton.has_quantize()) return OtherKind(set, "Dequantize");
  const v1::QuantizeRequest& quantize = set.skeleton.quantize();
  v1::DequantizeRequest stored;
  if (quantize.has_scale()) *stored.mutable_scale() = quantize.scale();
  if (quantize.has_zero_point()) *stored.mutable_zero_point() = quantize.zero_point();
  if (quantize.has_axis()) stored.set_axis(quantize.axis());
  stored.set_block_size(quantize.block_size());
  *stored.mutable_block_shape() = quantize.block_shape();
  return Merge(set, stored, request, raw);
}

absl::Status Complete(const StoredSet& set, v1::QuantizeEmbeddingsRequest& request, RawData& raw) {
  if (!set.skeleton.has_quantize_embeddings()) return OtherKind(set, "QuantizeEmbeddings");
  return Merge(set, set.skeleton.quantize_embeddings(), request, raw);
}

}  // namespace quantd::wire
