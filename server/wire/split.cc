#include "server/wire/split.h"

#include <algorithm>

#include "server/wire/writer.h"

namespace quantd::wire {
namespace {

void Append(BytesView bytes, std::string& out) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Copies a message's fields, but of those that are messages to look into what `inner` makes of
// them.
template <typename Inner>
void CopyFields(BytesView message, int depth, uint32_t last, std::string& out, Inner inner) {
  Scanner scanner(message, depth);
  Field field;
  while (scanner.Next(field)) {
    if (field.number > last) continue;
    if (field.type != WireType::kBytes || !inner(field)) Append(field.whole, out);
  }
  Append(scanner.rest(), out);  // nothing, or what is wrong
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
// What lies beyond these is unknown to this version, and left out: it may be large.
constexpr uint32_t kLastTensorField = 6;
constexpr uint32_t kLastRequestField = 16;

// kOperations: none.
size_t OperationOfItem(uint32_t number) {
  for (size_t i = 0; i < kOperations; ++i) {
    if (number == kMethods[i].item_field) return i;
  }
  return kOperations;
}

const uint32_t* FindTensor(uint32_t number) {
  return std::find(kTensorNumbers.begin(), kTensorNumbers.end(), number);
}

std::string SplitTensor(BytesView tensor, int depth, BytesView& raw) {
  std::string skeleton;
  CopyFields(tensor, depth, kLastTensorField, skeleton, [&](const Field& field) {
    if (field.number != kRawDataField) return false;
    raw = field.payload;
    AppendBytesField(kRawDataField, {}, skeleton);
    return true;
  });
  return skeleton;
}

std::string SplitFields(BytesView request, int depth, RawData& raw) {
  std::string skeleton;
  CopyFields(request, depth, kLastRequestField, skeleton, [&](const Field& field) {
    const uint32_t* const found = FindTensor(field.number);
    if (found == kTensorNumbers.end()) return false;
    BytesView& of_tensor = raw[found - kTensorNumbers.begin()];
    AppendBytesField(field.number, SplitTensor(field.payload, depth + 1, of_tensor), skeleton);
    return true;
  });
  return skeleton;
}

}  // namespace

Split SplitRequest(Method method, BytesView message) {
  Split split;
  split.skeleton = SplitFields(message, 0, split.raw[OperationIndex(method)]);
  return split;
}

Split SplitItem(BytesView message) {
  Split split;
  CopyFields(message, 0, kLastRequestField, split.skeleton, [&](const Field& field) {
    const size_t operation = OperationOfItem(field.number);
    if (operation == kOperations) return false;
    AppendBytesField(field.number, SplitFields(field.payload, 1, split.raw[operation]),
                     split.skeleton);
    return true;
  });
  return split;
}

uint64_t RestBytes(bool is_item, BytesView message) {
  uint64_t raw = 0;
  const auto tensor = [&raw](const Field& field) {
    if (field.number == kRawDataField) raw += field.payload.size();
  };
  const int depth = is_item ? 1 : 0;  // of the request
  const auto request = [&](const Field& field) {
    if (FindTensor(field.number) == kTensorNumbers.end()) return;
    ForEachMessage(field.payload, depth + 1, tensor);
  };
  const auto item = [&](const Field& field) {
    if (OperationOfItem(field.number) == kOperations) return;
    ForEachMessage(field.payload, depth, request);
  };
  if (is_item) {
    ForEachMessage(message, 0, item);
  } else {
    ForEachMessage(message, depth, request);
  }
  return message.size() - raw;
}

}  // namespace quantd::wire
