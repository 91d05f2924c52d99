#include "plan/operands.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/find_kernel.h"
#include "kernels/kernel_table.h"
#include "quantd/field_error.h"
#include "quantd/shape.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd {
namespace {

constexpr DataType kQuantizedTypes[] = {
    DataType::kUint8,          DataType::kInt8,       DataType::kUint16,
    DataType::kInt16,          DataType::kUint4,      DataType::kInt4,
    DataType::kUint2,          DataType::kInt2,       DataType::kFloat8E4M3Fn,
    DataType::kFloat8E4M3Fnuz, DataType::kFloat8E5M2, DataType::kFloat8E5M2Fnuz,
    DataType::kFloat4E2M1};

static_assert(std::endian::native == std::endian::little);
template <typename Code>
Code Load(const uint8_t* bytes, size_t index) {
  Code code;
  std::memcpy(&code, bytes + index * sizeof(Code), sizeof(Code));
  return code;
}

// The bytes of a tensor in one piece: where they lie, or copied.
class OnePiece {
 public:
  explicit OnePiece(const ByteChunks& bytes) {
    if (bytes.chunk_count() == 1) {
      data_ = bytes.chunk(0).data();
      return;
    }
    copy_ = std::make_unique_for_overwrite<uint8_t[]>(bytes.size());
    bytes.CopyTo(0, absl::MakeSpan(copy_.get(), bytes.size()));
    data_ = copy_.get();
  }
  const uint8_t* data() const { return data_; }

 private:
  std::unique_ptr<uint8_t[]> copy_;
  const uint8_t* data_;
};

// Calls each(i, code) for the elements of a tensor. The type is not looked at in the loop, which
// compilers vectorise where `each` allows it.
template <typename Each>
void ForEachCode(const TensorView& tensor, int64_t elements, Each each) {
  const OnePiece piece(tensor.bytes);
  const uint8_t* const bytes = piece.data();
  const auto size = static_cast<size_t>(elements);
  const auto walk = [&](auto load) {
    for (size_t i = 0; i < size; ++i) each(i, load(i));
  };
  // A byte at a time, then what there is of the last one.
  const auto walk_packed = [&](auto width) {
    constexpr size_t kBits = decltype(width)::value;
    constexpr size_t kCodes = 8 / kBits;
    const auto code = [bytes](size_t byte, size_t j) {
      return uint32_t{bytes[byte]} >> (j * kBits) & ((1u << kBits) - 1);
    };
    for (size_t byte = 0; byte < size / kCodes; ++byte) {
      for (size_t j = 0; j < kCodes; ++j) each(byte * kCodes + j, code(byte, j));
    }
    for (size_t j = 0; j < size % kCodes; ++j) {
      each(size / kCodes * kCodes + j, code(size / kCodes, j));
    }
  };
  switch (Info(tensor.data_type).bits) {
    case 2:
      return walk_packed(std::integral_constant<size_t, 2>());
    case 4:
      return walk_packed(std::integral_constant<size_t, 4>());
    case 8:
      return walk([bytes](size_t i) { return uint32_t{bytes[i]}; });
    case 16:
      return walk([bytes](size_t i) { return uint32_t{Load<uint16_t>(bytes, i)}; });
    default:
      return walk([bytes](size_t i) { return Load<uint32_t>(bytes, i); });
  }
}

// Calls each(i, value) for the elements of a tensor of an integer type.
template <typename Each>
void ForEachInteger(const TensorView& tensor, int64_t elements, Each each) {
  const int unused = 32 - Info(tensor.data_type).bits;
  if (Info(tensor.data_type).minimum < 0) {
    ForEachCode(tensor, elements, [each, unused](size_t i, uint32_t code) {
      each(i, static_cast<int32_t>(code << unused) >> unused);
    });
  } else {
    ForEachCode(tensor, elements,
                [each](size_t i, uint32_t code) { each(i, static_cast<int32_t>(code)); });
  }
}

// As Dequantize with scale 1, without a zero point.
void DecodeCodes(const KernelTable& kernels, DataType type, const uint8_t* codes, size_t size,
                 uint8_t* floats) {
  const float one = 1;
  DequantizeTile tile;
  tile.x = codes;
  tile.y = floats;
  tile.size = size;
  tile.scale = &one;
  FindDequantize(kernels, type, ScaleMode::kRuns)(tile);
}

// A shape with [1] for [].
Shape OneElementShape(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

}  // namespace

absl::Span<const DataType> QuantizedTypes() { return kQuantizedTypes; }

absl::Status CheckType(DataType type, absl::string_view field, absl::string_view wanted,
                       absl::Span<const DataType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) return absl::OkStatus();
  std::string names;
  for (DataType one : allowed) absl::StrAppend(&names, names.empty() ? "" : ", ", Name(one));
  if (type == DataType::kUnspecified) {
    return FieldError(field, absl::StrCat(field, " has no data type, ", wanted, " ", names));
  }
  const std::string name = FindDataType(static_cast<int>(type)) == nullptr
                               ? absl::StrCat("unknown (", static_cast<int>(type), ")")
                               : std::string(Name(type));
  return FieldError(field, absl::StrCat(field, " is ", name, ", ", wanted, " ", names));
}

absl::StatusOr<int64_t> CheckTensor(const TensorView& tensor, absl::string_view field) {
  absl::StatusOr<int64_t> elements = ElementCount(tensor.shape, field);
  if (!elements.ok()) return elements;
  const uint64_t wanted = ByteSize(tensor.data_type, *elements);
  if (tensor.bytes.size() == wanted) return elements;
  return FieldError(
      field, absl::StrCat(field, " has ", tensor.bytes.size(), " bytes, ", Name(tensor.data_type),
                          " of shape ", ShapeString(tensor.shape), " takes ", wanted));
}

absl::Status CheckZeroPointShape(const Shape& zero_point, const Shape& scale) {
  if (OneElementShape(zero_point) == OneElementShape(scale)) return absl::OkStatus();
  return FieldError("zero_point", absl::StrCat("zero_point has shape ", ShapeString(zero_point),
                                               ", scale has ", ShapeString(scale)));
}

absl::Status FillBase(const TensorView& x, DataType output_type, const Blocks& blocks,
                      PlanBase& plan) {
  absl::StatusOr<int64_t> elements = CheckTensor(x, "x");
  if (!elements.ok()) return elements.status();
  plan.input_type = x.data_type;
  plan.output_type = output_type;
  plan.shape = x.shape;
  plan.elements = *elements;
  plan.input_bytes = ByteSize(x.data_type, *elements);
  plan.output_bytes = ByteSize(output_type, *elements);
  plan.block_shape = blocks.lengths;
  plan.layout = MakeLayout(x.shape, blocks);
  return absl::OkStatus();
}

FloatColumn ReadFloats(const TensorView& tensor, int64_t elements) {
  const auto size = static_cast<size_t>(elements);
  const DataType type = tensor.data_type;
  if (type == DataType::kFloat && tensor.bytes.chunk_count() == 1) {
    // Where they lie, if a pointer to floats may point there: a copy is fetched from this core by
    // all others.
    const uint8_t* const bytes = tensor.bytes.chunk(0).data();
    if (reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0) {
      return FloatColumn(reinterpret_cast<const float*>(bytes), size);
    }
  }
  std::shared_ptr<float[]> values = std::make_shared_for_overwrite<float[]>(size);
  auto* const to = reinterpret_cast<uint8_t*>(values.get());
  if (type == DataType::kFloat) {
    tensor.bytes.CopyTo(0, absl::MakeSpan(to, tensor.bytes.size()));
    return FloatColumn(std::move(values), size);
  }
  if (type == DataType::kFloat8E8M0) {
    ForEachCode(tensor, elements, [to = values.get()](size_t i, uint32_t code) {
      to[i] = DecodeE8M0(static_cast<uint8_t>(code));
    });
    return FloatColumn(std::move(values), size);
  }
  const KernelTable& kernels = Kernels();
  const OnePiece bytes(tensor.bytes);
  if (const ConvertTile convert = ToFloat(kernels, type); convert != nullptr) {
    convert(bytes.data(), size, to);
  } else if (const ConvertTile unpack = Unpack(kernels, type); unpack != nullptr) {
    const auto codes = std::make_unique_for_overwrite<uint8_t[]>(size);
    unpack(bytes.data(), size, codes.get());
    DecodeCodes(kernels, type, codes.get(), size, to);
  } else {
    DecodeCodes(kernels, type, bytes.data(), size, to);
  }
  // As DecodeFloat has them: every NaN is the quiet one of its sign.
  for (float& value : absl::MakeSpan(values.get(), size)) {
    value = value == value ? value : std::copysign(std::numeric_limits<float>::quiet_NaN(), value);
  }
  return FloatColumn(std::move(values), size);
}

IntegerColumn ReadCodes(const TensorView& tensor, int64_t elements) {
  const auto size = static_cast<size_t>(elements);
  std::shared_ptr<int32_t[]> values = std::make_shared_for_overwrite<int32_t[]>(size);
  ForEachCode(tensor, elements,
              [to = values.get()](size_t i, uint32_t code) { to[i] = static_cast<int32_t>(code); });
  return IntegerColumn(std::move(values), size);
}

IntegerColumn ReadIntegers(const TensorView& tensor, int64_t elements) {
  const auto size = static_cast<size_t>(elements);
  std::shared_ptr<int32_t[]> values = std::make_shared_for_overwrite<int32_t[]>(size);
  ForEachInteger(tensor, elements, [to = values.get()](size_t i, int32_t value) { to[i] = value; });
  return IntegerColumn(std::move(values), size);
}

bool AllZero(const ByteChunks& bytes) {
  for (size_t chunk = 0; chunk < bytes.chunk_count(); ++chunk) {
    // Without a way out of the loop, which would keep compilers from vectorising it.
    uint8_t any = 0;
    for (const uint8_t byte : bytes.chunk(chunk)) any |= byte;
    if (any != 0) return false;
  }
  return true;
}

absl::Status CheckZeroBytes(const TensorView& zero_point, int64_t elements) {
  if (AllZero(zero_point.bytes)) return absl::OkStatus();
  const IntegerColumn codes = ReadCodes(zero_point, elements);
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == 0) continue;
    return FieldError("zero_point", absl::StrCat("zero_point[", i, "] is byte ", codes[i], ", ",
                                                 Name(zero_point.data_type), " takes only 0"));
  }
  return absl::OkStatus();
}

}  // namespace quantd
