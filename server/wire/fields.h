// The fields of a request as they were read, before anyone asks what they mean: what a generated
// message would be, but for the bytes of tensors, which stay views.
//
// Reading merges, as protobuf does: a message that occurs twice is one message with the fields of
// both, of a scalar the last one counts, lists grow, and of a oneof the last member counts (and is
// merged only with what came since another one was last set).
#ifndef QUANTD_SERVER_WIRE_FIELDS_H_
#define QUANTD_SERVER_WIRE_FIELDS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "quantd/bytes.h"
#include "quantd/shape.h"
#include "server/wire/method.h"
#include "server/wire/scan.h"

namespace quantd::wire {

// A shape or block_shape. Of more dimensions than any tensor may have only the number is kept, so
// that a list of 1-byte varints does not become eight times as large.
struct DimensionList {
  Shape dimensions;    // the first kMaxRank of them
  uint64_t count = 0;  // of all

  void Add(uint64_t value);
};

// int_values. No type is wider than 32 bits, so wider values need no place, only an error.
struct IntegerList {
  std::vector<int32_t> values;
  struct Wide {
    uint64_t index;
    int64_t value;
  };
  std::optional<Wide> wide;  // the first value that does not fit
  uint64_t count = 0;        // of all; values may lack those from the wide one on

  void Add(uint64_t value);
};

struct TensorFields {
  enum class Contents : uint8_t { kNone, kRawData, kFloatValues, kIntValues, kSharedMemory };

  bool present = false;
  int32_t data_type = 0;
  DimensionList shape;
  Contents contents = Contents::kNone;
  ByteChunks raw_data;
  std::vector<float> float_values;
  IntegerList int_values;
};

// The tensors of requests.
enum class TensorField : uint8_t { kX, kScale, kZeroPoint, kTensorScale };
inline constexpr int kTensorFields = 4;
inline constexpr std::array<absl::string_view, kTensorFields> kTensorFieldNames = {
    "x", "scale", "zero_point", "tensor_scale"};

// Numbers of the fields that are not tensors; the same in every request that has them.
namespace field_number {
inline constexpr uint32_t kOutputType = 4;
inline constexpr uint32_t kAxis = 5;
inline constexpr uint32_t kBlockSize = 6;
inline constexpr uint32_t kSaturate = 7;
inline constexpr uint32_t kPrecision = 8;       // Quantize
inline constexpr uint32_t kScaleType = 8;       // DynamicQuantize
inline constexpr uint32_t kZeroPointOrder = 9;  // Quantize
inline constexpr uint32_t kSymmetry = 9;        // DynamicQuantize
inline constexpr uint32_t kReportError = 10;
inline constexpr uint32_t kOutput = 11;
inline constexpr uint32_t kOutputEncoding = 12;
inline constexpr uint32_t kNonFinite = 13;
inline constexpr uint32_t kBlockShape = 14;
inline constexpr uint32_t kEnd = 16;  // above all
}  // namespace field_number

struct RequestFields {
  std::array<TensorFields, kTensorFields> tensors;
  // By field number; 0 where there is none.
  std::array<uint64_t, field_number::kEnd> scalars = {};
  std::array<bool, field_number::kEnd> present = {};
  DimensionList block_shape;

  const TensorFields& tensor(TensorField field) const { return tensors[static_cast<int>(field)]; }
};

// Merges a request message into `fields`. False when the bytes are not one.
bool ReadRequest(Method method, Scanner scanner, RequestFields& fields);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_FIELDS_H_
