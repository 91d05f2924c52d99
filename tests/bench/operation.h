// One operation on tensors in memory, planned and executed as the server does it for a request:
// FLOAT and UINT8.
//
//   Operation operation({.kind = OperationKind::kQuantize, .shape = {1 << 18}});
//   absl::Status status = operation.Run(executor);
#ifndef QUANTD_TESTS_BENCH_OPERATION_H_
#define QUANTD_TESTS_BENCH_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "quantd/executor.h"
#include "quantd/parameters.h"

namespace quantd::bench {

// Bytes on their own pages, which exist before anything is measured.
class Memory {
 public:
  explicit Memory(size_t bytes);
  uint8_t* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<uint8_t, void (*)(void*)> data_;
  size_t size_;
};
// FLOAT from -3 to 3, well mixed.
Memory Floats(size_t count);
// UINT8, all values.
Memory Codes(size_t count);

enum class OperationKind { kQuantize, kDynamicQuantize, kDequantize };
inline constexpr OperationKind kOperationKinds[] = {
    OperationKind::kQuantize, OperationKind::kDynamicQuantize, OperationKind::kDequantize};
std::string NameOf(OperationKind kind);

struct Spec {
  OperationKind kind = OperationKind::kQuantize;
  Shape shape = {};
  Granularity granularity = {};
};

class Operation {
 public:
  explicit Operation(const Spec& spec);

  absl::Status Run(const Executor& executor) const;

  OperationKind kind() const { return spec_.kind; }
  bool widens() const { return spec_.kind == OperationKind::kDequantize; }
  size_t elements() const { return elements_; }
  // One scale and zero point for the whole tensor are the same in every operation.
  const Memory& x() const { return x_; }
  const Memory& scale() const { return scale_; }
  const Memory& zero_point() const { return zero_point_; }
  // The last results, including those of DynamicQuantize.
  const Memory& y() const { return y_; }
  const Memory& made_scale() const { return made_scale_; }
  const Memory& made_zero_point() const { return made_zero_point_; }

 private:
  const Spec spec_;
  const size_t elements_, scales_;
  const Memory x_, scale_, zero_point_, y_, made_scale_, made_zero_point_;
};

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_OPERATION_H_
