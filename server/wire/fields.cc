#include "server/wire/fields.h"

#include <algorithm>

#include "server/wire/utf8.h"

namespace quantd::wire {
namespace {

using Contents = TensorFields::Contents;

// How a field of a request is read.
enum class Kind : uint8_t {
  kUnknown,
  kScalar,  // int64, bool or enum
  kTensor,
  kDimensions,
  kSharedMemory,
};
struct FieldRow {
  Kind kind = Kind::kUnknown;
  TensorField tensor = TensorField::kX;
};
using FieldTable = std::array<FieldRow, field_number::kEnd>;

// The contract's three request messages.
constexpr FieldTable TableOf(Method method) {
  FieldTable table = {};
  table[1] = {Kind::kTensor, TensorField::kX};
  if (method != Method::kDynamicQuantize) {
    table[2] = {Kind::kTensor, TensorField::kScale};
    table[3] = {Kind::kTensor, TensorField::kZeroPoint};
  }
  for (uint32_t number : {field_number::kOutputType, field_number::kAxis, field_number::kBlockSize,
                          field_number::kOutputEncoding}) {
    table[number].kind = Kind::kScalar;
  }
  table[field_number::kOutput].kind = Kind::kSharedMemory;
  table[field_number::kBlockShape].kind = Kind::kDimensions;
  if (method == Method::kDequantize) {
    table[15] = {Kind::kTensor, TensorField::kTensorScale};
  } else {
    for (uint32_t number : {field_number::kSaturate, field_number::kPrecision,
                            field_number::kZeroPointOrder, field_number::kReportError}) {
      table[number].kind = Kind::kScalar;
    }
  }
  if (method == Method::kDynamicQuantize) table[field_number::kNonFinite].kind = Kind::kScalar;
  return table;
}
constexpr std::array<FieldTable, kMethods.size()> kTables = {
    TableOf(Method::kQuantize), TableOf(Method::kDequantize), TableOf(Method::kDynamicQuantize)};

// Room for `more` without growing by a bit each time.
template <typename T>
void Reserve(std::vector<T>& values, size_t more) {
  const size_t wanted = values.size() + more;
  if (wanted > values.capacity()) values.reserve(std::max(wanted, values.capacity() * 2));
}

// Values of a repeated int64 field, packed or one.
template <typename List>
bool ReadIntegers(const Field& field, const Scanner& scanner, List& list) {
  if (field.type == WireType::kVarint) {
    list.Add(field.value);
    return true;
  }
  Scanner packed = scanner.Payload();
  while (packed.remaining() != 0) {
    uint64_t value;
    if (!packed.ReadVarint(value)) return false;
    list.Add(value);
  }
  return true;
}

bool IsIntegers(const Field& field, uint32_t number) {
  return field.Is(number, WireType::kVarint) || field.Is(number, WireType::kBytes);
}

bool ReadFloatValues(Scanner scanner, std::vector<float>& values) {
  Field field;
  while (scanner.Next(field)) {
    if (field.Is(1, WireType::kFixed32)) {
      const auto bits = static_cast<uint32_t>(field.value);
      values.push_back(__builtin_bit_cast(float, bits));
    } else if (field.Is(1, WireType::kBytes)) {
      const size_t bytes = field.value;
      if (bytes % sizeof(float) != 0) return false;
      const size_t before = values.size();
      Reserve(values, bytes / sizeof(float));
      values.resize(before + bytes / sizeof(float));
      scanner.Payload().ReadBytes(values.data() + before, bytes);
    }
  }
  return scanner.ok();
}

bool ReadIntValues(Scanner scanner, IntegerList& list) {
  Field field;
  while (scanner.Next(field)) {
    if (!IsIntegers(field, 1)) continue;
    if (field.type == WireType::kBytes) Reserve(list.values, scanner.Payload().CountVarints());
    if (!ReadIntegers(field, scanner, list)) return false;
  }
  return scanner.ok();
}

// A SharedMemoryReference is only checked: nothing can be done with one yet.
bool ReadSharedMemory(Scanner scanner) {
  Field field;
  while (scanner.Next(field)) {
    if (field.Is(1, WireType::kBytes) && !IsValidUtf8(scanner.Payload().Copy())) return false;
  }
  return scanner.ok();
}

// Makes `contents` the member of the oneof that is set.
void Switch(TensorFields& tensor, Contents contents) {
  if (tensor.contents == contents) return;
  tensor.contents = contents;
  tensor.raw_data.Clear();
  tensor.float_values = {};
  tensor.int_values = {};
}

bool ReadTensor(Scanner scanner, TensorFields& tensor) {
  tensor.present = true;
  Field field;
  while (scanner.Next(field)) {
    if (field.Is(1, WireType::kVarint)) {
      tensor.data_type = static_cast<int32_t>(field.value);
    } else if (IsIntegers(field, 2)) {
      if (!ReadIntegers(field, scanner, tensor.shape)) return false;
    } else if (field.Is(3, WireType::kBytes)) {
      Switch(tensor, Contents::kRawData);
      tensor.raw_data.Clear();
      scanner.Payload().AppendTo(tensor.raw_data);
    } else if (field.Is(4, WireType::kBytes)) {
      Switch(tensor, Contents::kFloatValues);
      if (!ReadFloatValues(scanner.Payload(), tensor.float_values)) return false;
    } else if (field.Is(5, WireType::kBytes)) {
      Switch(tensor, Contents::kIntValues);
      if (!ReadIntValues(scanner.Payload(), tensor.int_values)) return false;
    } else if (field.Is(6, WireType::kBytes)) {
      Switch(tensor, Contents::kSharedMemory);
      if (!ReadSharedMemory(scanner.Payload())) return false;
    }
  }
  return scanner.ok();
}

// One field of a request; what does not have the contract's type is unknown and left alone.
bool ReadField(const FieldRow& row, const Field& field, const Scanner& scanner,
               RequestFields& fields) {
  switch (row.kind) {
    case Kind::kUnknown:
      return true;
    case Kind::kScalar:
      if (field.type != WireType::kVarint) return true;
      fields.scalars[field.number] = field.value;
      fields.present[field.number] = true;
      return true;
    case Kind::kTensor:
      if (field.type != WireType::kBytes) return true;
      return ReadTensor(scanner.Payload(), fields.tensors[static_cast<int>(row.tensor)]);
    case Kind::kDimensions:
      if (!IsIntegers(field, field.number)) return true;
      return ReadIntegers(field, scanner, fields.block_shape);
    case Kind::kSharedMemory:
      if (field.type != WireType::kBytes) return true;
      fields.present[field.number] = true;
      return ReadSharedMemory(scanner.Payload());
  }
  return true;
}

}  // namespace

void DimensionList::Add(uint64_t value) {
  if (count++ < kMaxRank) dimensions.push_back(static_cast<int64_t>(value));
}

void IntegerList::Add(uint64_t value) {
  const auto integer = static_cast<int64_t>(value);
  if (!wide.has_value()) {
    if (integer >= INT32_MIN && integer <= INT32_MAX) {
      values.push_back(static_cast<int32_t>(integer));
    } else {
      wide = Wide{count, integer};
    }
  }
  ++count;
}

bool ReadRequest(Method method, Scanner scanner, RequestFields& fields) {
  const FieldTable& table = kTables[static_cast<int>(method)];
  Field field;
  while (scanner.Next(field)) {
    if (field.number >= field_number::kEnd) continue;
    if (!ReadField(table[field.number], field, scanner, fields)) return false;
  }
  return scanner.ok();
}

}  // namespace quantd::wire
