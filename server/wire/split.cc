#include "server/wire/split.h"

#include <algorithm>

#include "server/wire/writer.h"

namespace quantd::wire {
namespace {

void Append(BytesView bytes, std::string& out) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Copies a message's fields, but of those that are messages to look into what `inner` makes of
// them. False when the bytes are wrong.
template <typename Inner>
bool CopyFields(BytesView message, int depth, uint32_t last, std::string& out, Inner inner) {
  Scanner scanner(message, depth);
  Field field;
  while (scanner.Next(field)) {
    if (field.number > last) continue;
    if (field.type != WireType::kBytes || !inner(field)) Append(field.whole, out);
  }
  return scanner.ok();
}

template <typename Visit>
void ForEachMessage(BytesView message, int depth, Visit visit) {
  Scanner scanner(message, depth);
  Field field;
  while (scanner.Next(field)) {
    if (field.type == WireType::kBytes) visit(field);
  }
}

constexpr uint32_t kRawDataField = 3;
constexpr uint32_t kFloatValuesField = 4;
constexpr uint32_t kValuesField = 1;  // in it
// What lies beyond these is unknown to this version, and left out: it may be large.
constexpr uint32_t kLastTensorField = 6;
constexpr uint32_t kLastRequestField = 16;
// kUnaryOperations: none.
size_t OperationOfItem(uint32_t number) {
  for (size_t i = 0; i < kUnaryOperations; ++i) {
    if (number == kMethods[i].item_field) return i;
  }
  return kUnaryOperations;
}

// kTensorFields: none that an operation has.
size_t FindTensor(size_t operation, uint32_t number) {
  const auto& numbers = kTensorNumbers[operation];
  return static_cast<size_t>(std::find(numbers.begin(), numbers.end(), number) - numbers.begin());
}

// Whether another operation has a tensor of that number: what an operation does not know of is left
// out of its skeleton.
bool IsTensorOfAny(uint32_t number) {
  for (size_t i = 0; i < kUnaryOperations; ++i) {
    if (FindTensor(i, number) != kTensorFields) return true;
  }
  return false;
}

bool SplitTensor(BytesView tensor, int depth, std::string& skeleton, BytesView& raw) {
  return CopyFields(tensor, depth, kLastTensorField, skeleton, [&](const Field& field) {
    if (field.number != kRawDataField) return false;
    raw = field.payload;
    AppendBytesField(kRawDataField, {}, skeleton);
    return true;
  });
}

bool SplitFields(size_t operation, BytesView request, int depth, std::string& skeleton,
                 RawData& raw) {
  bool tensors_ok = true;
  const bool ok = CopyFields(request, depth, kLastRequestField, skeleton, [&](const Field& field) {
    if (!IsTensorOfAny(field.number)) return false;
    const size_t tensor = FindTensor(operation, field.number);
    if (tensor == kTensorFields) return true;  // unknown to this request: left out
    std::string inner;
    tensors_ok &= SplitTensor(field.payload, depth + 1, inner, raw[tensor]);
    AppendBytesField(field.number, inner, skeleton);
    return true;
  });
  return ok && tensors_ok;
}

// PutParametersRequest: name = 1, then the set; ParameterSet: a request of either kind.
constexpr uint32_t kPutSetField = 2;
constexpr uint32_t kLastSetField = 2;
size_t OperationOfSet(uint32_t number) {
  return OperationIndex(number == 1 ? Method::kQuantize : Method::kQuantizeEmbeddings);
}

bool SplitSetFields(BytesView set, int depth, Split& split, std::string& skeleton) {
  bool requests_ok = true;
  const bool ok = CopyFields(set, depth, kLastSetField, skeleton, [&](const Field& field) {
    const size_t operation = OperationOfSet(field.number);
    std::string inner;
    requests_ok &= SplitFields(operation, field.payload, depth + 1, inner, split.raw[operation]);
    AppendBytesField(field.number, inner, skeleton);
    return true;
  });
  return ok && requests_ok;
}

}  // namespace

Split SplitRequest(Method method, BytesView message) {
  Split split;
  const size_t operation = OperationIndex(method);
  split.ok = SplitFields(operation, message, 0, split.skeleton, split.raw[operation]);
  return split;
}

Split SplitItem(BytesView message) {
  Split split;
  bool requests_ok = true;
  split.ok = CopyFields(message, 0, kLastRequestField, split.skeleton, [&](const Field& field) {
    const size_t operation = OperationOfItem(field.number);
    if (operation == kUnaryOperations) return false;
    std::string inner;
    requests_ok &= SplitFields(operation, field.payload, 1, inner, split.raw[operation]);
    AppendBytesField(field.number, inner, split.skeleton);
    return true;
  });
  split.ok &= requests_ok;
  return split;
}

Split SplitSet(BytesView message) {
  Split split;
  split.ok = SplitSetFields(message, 0, split, split.skeleton);
  return split;
}

Split SplitPut(BytesView message) {
  Split split;
  bool set_ok = true;
  split.ok = CopyFields(message, 0, kPutSetField, split.skeleton, [&](const Field& field) {
    if (field.number != kPutSetField) return false;
    std::string inner;
    set_ok &= SplitSetFields(field.payload, 1, split, inner);
    AppendBytesField(field.number, inner, split.skeleton);
    return true;
  });
  split.ok &= set_ok;
  return split;
}

uint64_t PutRestBytes(BytesView message) {
  uint64_t raw = 0;
  const auto tensor = [&raw](const Field& field) {
    if (field.number == kRawDataField) raw += field.payload.size();
  };
  const auto request = [&](const Field& field) {
    if (IsTensorOfAny(field.number)) ForEachMessage(field.payload, 3, tensor);
  };
  const auto set = [&](const Field& field) {
    if (field.number <= kLastSetField) ForEachMessage(field.payload, 2, request);
  };
  ForEachMessage(message, 0, [&](const Field& field) {
    if (field.number == kPutSetField) ForEachMessage(field.payload, 1, set);
  });
  return message.size() - raw;
}

namespace {

// Shows every field of bytes of every tensor, with the depth of what lies in it.
template <typename Visit>
void ForEachTensorField(bool is_item, BytesView message, Visit visit) {
  const int depth = is_item ? 1 : 0;  // of the request
  const auto request = [&](const Field& field) {
    if (!IsTensorOfAny(field.number)) return;
    ForEachMessage(field.payload, depth + 1, [&](const Field& inner) { visit(inner, depth + 2); });
  };
  const auto item = [&](const Field& field) {
    if (OperationOfItem(field.number) == kUnaryOperations) return;
    ForEachMessage(field.payload, depth, request);
  };
  if (is_item) {
    ForEachMessage(message, 0, item);
  } else {
    ForEachMessage(message, depth, request);
  }
}

}  // namespace

uint64_t RestBytes(bool is_item, BytesView message) {
  uint64_t raw = 0;
  ForEachTensorField(is_item, message, [&raw](const Field& field, int) {
    if (field.number == kRawDataField) raw += field.payload.size();
  });
  return message.size() - raw;
}

uint64_t PackedFloatBytes(bool is_item, BytesView message) {
  uint64_t packed = 0;
  ForEachTensorField(is_item, message, [&packed](const Field& field, int depth) {
    if (field.number != kFloatValuesField) return;
    ForEachMessage(field.payload, depth, [&packed](const Field& values) {
      if (values.number == kValuesField) packed += values.payload.size();
    });
  });
  return packed;
}

// CalibrateRequest's x and state.
constexpr uint32_t kCalibrateX = 2;
constexpr uint32_t kCalibrateState = 3;

CalibrateSplit SplitCalibrate(BytesView message) {
  CalibrateSplit split;
  bool x_ok = true;
  split.ok = CopyFields(message, 0, kLastRequestField, split.skeleton, [&](const Field& field) {
    if (field.number == kCalibrateState) {
      split.state = field.payload;
      return true;
    }
    if (field.number != kCalibrateX) return false;
    std::string inner;
    x_ok &= SplitTensor(field.payload, 1, inner, split.raw[static_cast<size_t>(TensorField::kX)]);
    AppendBytesField(kCalibrateX, inner, split.skeleton);
    return true;
  });
  split.ok &= x_ok;
  return split;
}

uint64_t CalibrateRestBytes(BytesView message) {
  uint64_t raw = 0;
  ForEachMessage(message, 0, [&raw](const Field& field) {
    if (field.number == kCalibrateState) raw += field.payload.size();
    if (field.number != kCalibrateX) return;
    ForEachMessage(field.payload, 1, [&raw](const Field& inner) {
      if (inner.number == kRawDataField) raw += inner.payload.size();
    });
  });
  return message.size() - raw;
}

}  // namespace quantd::wire
