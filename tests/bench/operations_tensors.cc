// See operations_tensors.h.
#include "operations_tensors.h"

#include <algorithm>
#include <cstring>

#include "quantd/shape.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd::bench {
namespace {

constexpr size_t kPiece = 8 * 1024;

size_t Bytes(DataType type, int64_t elements) {
  return (static_cast<size_t>(elements) * Info(type).bits + 7) / 8;
}

OwnedTensor Allocate(DataType type, const Shape& shape) {
  OwnedTensor tensor{type, shape, nullptr, {}};
  const size_t size = Bytes(type, Product(shape));
  tensor.memory = std::make_shared<Memory>(size);
  tensor.bytes = ByteChunks({tensor.memory->data(), size});
  return tensor;
}

uint32_t Mixed(int64_t index) { return static_cast<uint32_t>(index * 2654435761u) >> 8; }

// In the type's own form.
uint32_t Encode(DataType type, float value) {
  switch (type) {
    case DataType::kFloat:
    case DataType::kInt32: {
      const auto integer = static_cast<int32_t>(value);
      uint32_t code;
      std::memcpy(&code, type == DataType::kFloat ? static_cast<const void*>(&value) : &integer, 4);
      return code;
    }
    case DataType::kFloat16:
    case DataType::kBfloat16:
    case DataType::kFloat8E4M3Fn:
      return EncodeFormat(FormatOf(type), value, /*saturate=*/true);
    default:
      return static_cast<uint32_t>(static_cast<int32_t>(value));
  }
}

}  // namespace

Memory::Memory(size_t bytes)
    : data_(static_cast<uint8_t*>(std::aligned_alloc(4096, (bytes + 4096) / 4096 * 4096)),
            std::free) {
  std::memset(data_.get(), 0, bytes);
}

int64_t Product(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t length : shape) product *= length;
  return product;
}

OwnedTensor MakeInput(DataType type, const Shape& shape) {
  OwnedTensor tensor = Allocate(type, shape);
  const bool real = Info(type).kind == DataTypeKind::kFloat;
  uint8_t* data = tensor.memory->data();
  if (!real && type != DataType::kInt32) {
    for (size_t i = 0; i < tensor.bytes.size(); ++i) data[i] = static_cast<uint8_t>(Mixed(i));
    return tensor;
  }
  for (int64_t i = 0; i < Product(shape); ++i) {
    const float value = (static_cast<float>(Mixed(i)) / (1 << 24) - 0.5f) * (real ? 6 : 254);
    StoreCode(type, data, i, Encode(type, value));
  }
  return tensor;
}

OwnedTensor InPieces(const OwnedTensor& tensor) {
  const size_t size = tensor.bytes.size();
  const size_t distance = kPiece + 77;
  OwnedTensor pieces{
      tensor.type, tensor.shape, std::make_shared<Memory>((size / kPiece + 2) * distance), {}};
  uint8_t* to = pieces.memory->data();
  // The first piece is shorter, as the message's other fields come before it.
  for (size_t done = 0, most = kPiece - 27; done < size; most = kPiece) {
    const size_t some = std::min(most, size - done);
    tensor.bytes.CopyTo(done, {to, some});
    pieces.bytes.Append({to, some});
    done += some;
    to += distance;
  }
  return pieces;
}

OwnedTensor MakeScale(DataType type, const Shape& shape) {
  OwnedTensor tensor = Allocate(type, shape);
  for (int64_t i = 0; i < Product(shape); ++i) {
    uint32_t code;
    if (type == DataType::kFloat8E8M0) {
      code = static_cast<uint32_t>(120 + i % 3);
    } else if (type == DataType::kInt32) {
      code = static_cast<uint32_t>(1 + i % 3);
    } else {
      code = Encode(type, 0.0234375f * (1 + static_cast<float>(i % 7) / 16));
    }
    StoreCode(type, tensor.memory->data(), i, code);
  }
  return tensor;
}

OwnedTensor MakeZeroPoint(DataType type, const Shape& shape) {
  OwnedTensor tensor = Allocate(type, shape);
  for (int64_t i = 0; i < Product(shape); ++i) {
    StoreCode(type, tensor.memory->data(), i, 1);
  }
  return tensor;
}

}  // namespace quantd::bench
