// Tensors to measure with: any type, any shape, whole or in the pieces that a network delivers.
#ifndef QUANTD_TESTS_BENCH_OPERATIONS_TENSORS_H_
#define QUANTD_TESTS_BENCH_OPERATIONS_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "quantd/bytes.h"
#include "quantd/data_type.h"
#include "quantd/parameters.h"

namespace quantd::bench {

// Bytes on pages of their own, there before anything is measured.
class Memory {
 public:
  explicit Memory(size_t bytes);
  uint8_t* data() const { return data_.get(); }

 private:
  std::unique_ptr<uint8_t, void (*)(void*)> data_;
};

int64_t Product(const Shape& shape);

// A tensor that owns its bytes.
struct OwnedTensor {
  DataType type = DataType::kUnspecified;
  Shape shape;
  std::shared_ptr<Memory> memory;
  ByteChunks bytes;

  TensorView view() const { return {type, shape, bytes}; }
};

// What is quantized or dequantized: -3 to 3 (INT32: -127 to 127), or codes of all kinds.
OwnedTensor MakeInput(DataType type, const Shape& shape);
// The same bytes as gRPC hands them over: pieces of 8 KiB at odd addresses, elements cut in two.
OwnedTensor InPieces(const OwnedTensor& tensor);
// Scales that differ from one to the next, about a 40th (INT32: 1 to 3).
OwnedTensor MakeScale(DataType type, const Shape& shape);
// All 1.
OwnedTensor MakeZeroPoint(DataType type, const Shape& shape);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_OPERATIONS_TENSORS_H_
