// Reads protobuf's wire format straight from a message's slices: field after field, without a
// parsed message and without copying what is long.
//
//   message = { tag value }*       tag    = varint (number << 3 | type), at most 5 bytes
//   type 0 varint, at most 10 bytes     type 1 8 bytes     type 5 4 bytes
//   type 2 length (varint below 2^31) and so many bytes: bytes, a message, or packed values
//   type 3 ... type 4 a group: fields between a start and an end with the same number
//
//   Scanner scanner(message);
//   Field field;
//   while (scanner.Next(field)) {
//     if (field.Is(1, WireType::kBytes)) HandleMessage(scanner.Payload());
//   }
//   if (!scanner.ok()) ...
//
// What is accepted is exactly what protobuf's own parser accepts: over-long varints, bits past the
// 32nd or 64th dropped, fields in any order. Groups are known to no message of the contract, so
// they are checked and skipped here, to protobuf's depth of 100.
#ifndef QUANTD_SERVER_WIRE_SCAN_H_
#define QUANTD_SERVER_WIRE_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "quantd/bytes.h"
#include "server/wire/slices.h"

namespace quantd::wire {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

struct Field {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;  // of a varint or fixed field; the length of bytes

  // A field whose type is not the contract's is an unknown field: it is skipped.
  bool Is(uint32_t wanted_number, WireType wanted_type) const {
    return number == wanted_number && type == wanted_type;
  }
};

// A view: the slices must outlive it. Cheap to copy.
class Scanner {
 public:
  explicit Scanner(const SliceList& message);

  // Reads a field and passes by the one before. False at the end, and when the bytes are wrong.
  bool Next(Field& field);

  // What Next() gave: the bytes of a kBytes field, in turn a scanner for a message or for packed
  // values. REQUIRES: the last Next() returned true and a kBytes field.
  Scanner Payload() const;

  // False once something was wrong. What was read before stays true.
  bool ok() const { return ok_; }

  // For packed values: the bytes that are left, and one value off their front. False when the value
  // ends behind the end.
  size_t remaining() const { return remaining_; }
  bool ReadVarint(uint64_t& value);
  bool ReadBytes(void* destination, size_t count);

  // How many varints are left, if what is left is packed varints: bytes without continuation bit.
  size_t CountVarints() const;

  // All that is left: as views, or copied.
  void AppendTo(ByteChunks& chunks) const;
  std::string Copy() const;

 private:
  static constexpr int kMaxDepth = 100;  // of messages and groups in each other; protobuf's default

  bool Fail() {
    ok_ = false;
    return false;
  }
  bool ReadByte(uint8_t& byte);
  bool ReadTag(uint32_t& tag);
  bool ReadLength(uint64_t& length);
  bool ReadValue(Field& field);
  bool Skip(size_t count);
  bool SkipGroup(uint32_t number);
  template <typename Visit>
  void ForEachPiece(Visit visit) const;

  const SliceList* message_;
  size_t slice_ = 0;  // index of the slice that position_ lies in
  const uint8_t* position_ = nullptr;
  const uint8_t* slice_end_ = nullptr;
  size_t remaining_ = 0;  // bytes up to the end of this message
  size_t payload_ = 0;    // bytes of the field that Next() gave last, still ahead
  int depth_ = kMaxDepth;
  bool ok_ = true;
};

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_SCAN_H_
