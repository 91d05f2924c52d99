// Reads protobuf's wire format field after field, without a parsed message and without copying.
//
//   message = { tag value }*       tag    = varint (number << 3 | type), at most 5 bytes
//   type 0 varint, at most 10 bytes     type 1 8 bytes     type 5 4 bytes
//   type 2 length (varint below 2^31) and its bytes: bytes, a message, or packed values
//   type 3 ... type 4 a group: fields between a start and an end with the same number
//
//   Scanner scanner(message);
//   Field field;
//   while (scanner.Next(field)) {
//     if (field.Is(1, WireType::kBytes)) HandleMessage(field.payload);
//   }
//   if (!scanner.ok()) ...
//
// Accepts what protobuf's own parser accepts at this level: over-long varints, bits after the
// 64th are dropped, fields in any order. No message of the contract has groups: they are
// skipped.
#ifndef QUANTD_SERVER_WIRE_SCAN_H_
#define QUANTD_SERVER_WIRE_SCAN_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace quantd::wire {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

using BytesView = absl::Span<const uint8_t>;

struct Field {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  BytesView whole;      // with tag and length
  BytesView payload;    // of a kBytes field
  uint64_t varint = 0;  // of a kVarint field

  bool Is(uint32_t wanted_number, WireType wanted_type) const {
    return number == wanted_number && type == wanted_type;
  }
};

// A view: the message must outlive it.
class Scanner {
 public:
  // `depth`: the number of messages around this one. The parser counts them together with the
  // groups. `left`: how many fields may still be read, including those in groups; it is
  // decremented, and one field more is an error. Null: no limit.
  explicit Scanner(BytesView message, int depth = 0, uint64_t* left = nullptr)
      : rest_(message), depth_(depth), left_(left) {}

  // Reads a field. A group is one field. False at the end, and if the bytes are invalid.
  bool Next(Field& field);
  // False after an error. Fields that were read before it remain valid.
  bool ok() const { return ok_; }

 private:
  bool MayReadOne() const {
    if (left_ != nullptr && *left_ == 0) return false;
    if (left_ != nullptr) --*left_;
    return true;
  }
  const uint8_t* ReadVarint(const uint8_t* at, int most, uint64_t& value) const;
  const uint8_t* ReadTag(Field& field) const;
  const uint8_t* ReadValue(const uint8_t* at, Field& field) const;
  const uint8_t* SkipGroup(const uint8_t* at, uint32_t number) const;

  BytesView rest_;
  int depth_;
  uint64_t* left_;
  bool ok_ = true;
};

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_SCAN_H_
