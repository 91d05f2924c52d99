#include "server/wire/split.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "quantd/v1/quantization.pb.h"
#include "server/wire/writer.h"

namespace quantd::wire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// The bytes of a piece. Values take up to some 50 ns per byte.
constexpr int kPiece = 64 << 10;

// Counts what is read, and pauses between pieces.
struct Reading {
  BetweenPieces between;
  size_t bytes = 0;  // of this piece

  void Read(size_t more) {
    bytes += more;
    if (bytes < kPiece) return;
    bytes = 0;
    between();
  }
};

// Gives the parser one piece after another.
class Pieces final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  Pieces(const std::string& bytes, BetweenPieces between)
      : bytes_(bytes.data(), static_cast<int>(bytes.size()), kPiece), between_(between) {}
  bool Next(const void** data, int* size) override {
    between_();
    return bytes_.Next(data, size);
  }
  void BackUp(int count) override { bytes_.BackUp(count); }
  bool Skip(int count) override { return bytes_.Skip(count); }
  int64_t ByteCount() const override { return bytes_.ByteCount(); }

 private:
  google::protobuf::io::ArrayInputStream bytes_;
  const BetweenPieces between_;
};

struct Outline;

enum class Part : uint8_t {
  kUnknown,  // unknown to this version: left out
  kCopied,
  kFloats,   // FloatValues: copied
  kId,       // of a stream's item: copied
  kMessage,  // contains a tensor or bytes
  kBytes,    // cut out: all fields of type bytes in the contract
};

struct Slot {
  Part part = Part::kUnknown;
  size_t tensor = kTensorFields;           // if the message is a tensor: which
  std::unique_ptr<const Outline> message;  // for kMessage
};

// What to do with each field of a message.
struct Outline {
  explicit Outline(const Descriptor& message);

  const Slot& of(uint32_t number) const {
    return number < slots.size() ? slots[number] : slots.front();
  }

  size_t operation = kOperations;  // the operation whose request this is
  std::vector<Slot> slots;         // by number; there is no field 0
};

bool HasBytes(const Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.type() == FieldDescriptor::TYPE_BYTES) return true;
    if (field.message_type() != nullptr && HasBytes(*field.message_type())) return true;
  }
  return false;
}

size_t OperationOf(const Descriptor& message) {
  size_t operation = 0;
  while (operation < kOperations &&
         message.name() != absl::StrCat(kMethods[operation].name, "Request")) {
    ++operation;
  }
  return operation;
}

size_t TensorOf(const FieldDescriptor& field) {
  if (field.message_type() != v1::Tensor::descriptor()) return kTensorFields;
  return static_cast<size_t>(TensorFieldNamed(field.name()));
}

Outline::Outline(const Descriptor& message) : operation(OperationOf(message)), slots(1) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const auto number = static_cast<size_t>(field.number());
    if (slots.size() <= number) slots.resize(number + 1);
    Slot& slot = slots[number];
    slot.part = Part::kCopied;
    slot.tensor = TensorOf(field);
    if (field.type() == FieldDescriptor::TYPE_BYTES) {
      slot.part = Part::kBytes;
    } else if (field.message_type() == v1::FloatValues::descriptor()) {
      slot.part = Part::kFloats;
    } else if (&message == v1::StreamRequest::descriptor() && field.name() == "id") {
      slot.part = Part::kId;
    } else if (field.message_type() != nullptr && HasBytes(*field.message_type())) {
      slot.part = Part::kMessage;
      slot.message = std::make_unique<Outline>(*field.message_type());
    }
  }
}

const Outline& OutlineOf(Method method) {
  static const auto* const outlines = [] {
    auto* const made = new std::vector<Outline>;
    for (const MethodInfo& info : kMethods) {
      made->emplace_back(*google::protobuf::DescriptorPool::generated_pool()
                              ->FindServiceByName(std::string(info.service))
                              ->FindMethodByName(std::string(info.name))
                              ->input_type());
    }
    return made;
  }();
  return (*outlines)[static_cast<size_t>(method)];
}

// Copies a message's skeleton; leaves the message's own bytes in `bytes`, and those of its tensors
// in the split. Returns false if the message is invalid.
bool Copy(const Outline& outline, BytesView message, int depth, Reading& reading, Split& split,
          BytesView& bytes, std::string& skeleton) {
  bool inner_ok = true;
  Scanner scanner(message, depth);
  Field field;
  while (scanner.Next(field)) {
    const Slot& slot = outline.of(field.number);
    const bool nested = field.type == WireType::kBytes && slot.part == Part::kMessage;
    if (!nested) reading.Read(field.whole.size() - field.payload.size());
    if (slot.part == Part::kUnknown) continue;
    if (field.type == WireType::kBytes && slot.part == Part::kBytes) {
      bytes = field.payload;
      AppendBytesField(field.number, {}, skeleton);
    } else if (nested) {
      const bool is_tensor = outline.operation < kOperations && slot.tensor < kTensorFields;
      std::string inner;
      inner_ok &= Copy(*slot.message, field.payload, depth + 1, reading, split,
                       is_tensor ? split.raw[outline.operation][slot.tensor] : bytes, inner);
      AppendBytesField(field.number, inner, skeleton);
    } else {
      skeleton.append(reinterpret_cast<const char*>(field.whole.data()), field.whole.size());
    }
  }
  return scanner.ok() && inner_ok;
}

uint64_t PackedBytes(BytesView float_values, int depth, uint64_t& left) {
  uint64_t packed = 0;
  Scanner scanner(float_values, depth, &left);
  Field field;
  while (scanner.Next(field)) {
    if (field.Is(v1::FloatValues::kValuesFieldNumber, WireType::kBytes)) {
      packed += field.payload.size();
    }
  }
  return packed;
}

// How many fields may still be read.
struct FieldsLeft {
  uint64_t of_messages;
  uint64_t of_lists;
};

void Measure(const Outline& outline, BytesView message, int depth, FieldsLeft& left, Rest& rest) {
  Scanner scanner(message, depth, &left.of_messages);
  Field field;
  while (scanner.Next(field)) {
    const Slot& slot = outline.of(field.number);
    if (slot.part == Part::kUnknown) rest.bytes -= field.whole.size();
    if (slot.part == Part::kId && field.type == WireType::kVarint) rest.id = field.varint;
    if (field.type != WireType::kBytes) continue;
    if (slot.part == Part::kBytes) rest.bytes -= field.payload.size();
    if (slot.part == Part::kFloats) {
      rest.packed_floats += PackedBytes(field.payload, depth + 1, left.of_lists);
    }
    if (slot.part == Part::kMessage) Measure(*slot.message, field.payload, depth + 1, left, rest);
  }
}

}  // namespace

Split SplitRequest(Method method, BytesView message, BetweenPieces between) {
  Split split;
  BytesView none;  // no request has bytes outside of its tensors
  Reading reading{between};
  split.ok = Copy(OutlineOf(method), message, 0, reading, split, none, split.skeleton);
  return split;
}

absl::Status Parse(const Split& split, google::protobuf::MessageLite& message,
                   BetweenPieces between) {
  if (split.ok) {
    Pieces pieces(split.skeleton, between);
    if (split.skeleton.size() <= kPiece ? message.ParseFromString(split.skeleton)
                                        : message.ParseFromZeroCopyStream(&pieces)) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError("the message is truncated or not a " + message.GetTypeName());
}

Rest RestOf(Method method, BytesView message, uint64_t most_fields) {
  Rest rest;
  rest.bytes = message.size();
  FieldsLeft left{most_fields, most_fields};
  Measure(OutlineOf(method), message, 0, left, rest);
  rest.whole = left.of_messages != 0;
  return rest;
}

}  // namespace quantd::wire
