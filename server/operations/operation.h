// The work of a request: planned once, then executed into a response. Independent of gRPC: anything
// that has a wire::Request can use it.
//
//   absl::StatusOr<Operation> operation = Plan(request);
//   ... admit operation->memory_bytes() ...
//   wire::Response response(operation->response_layout(), pool);
//   absl::Status status = operation->Execute(executor, interrupted, response.contents());
#ifndef QUANTD_SERVER_OPERATIONS_OPERATION_H_
#define QUANTD_SERVER_OPERATIONS_OPERATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/executor.h"
#include "quantd/operation.h"
#include "server/wire/method.h"
#include "server/wire/request.h"
#include "server/wire/response_layout.h"

namespace quantd::operations {

// A part of y may begin at a multiple of this: there its bytes are whole for every type.
inline constexpr int64_t kElementsStep = 64;

// Movable; immutable. Views the request that it was planned from.
class Operation {
 public:
  wire::Method method() const { return layout_.method; }
  DataType input_type() const { return BaseOf(plan_).input_type; }
  DataType output_type() const { return BaseOf(plan_).output_type; }
  int64_t elements() const { return BaseOf(plan_).elements; }
  // Packed bytes of x, and of y and its scales.
  uint64_t input_bytes() const { return BaseOf(plan_).input_bytes; }
  uint64_t output_bytes() const;

  // Bytes that the response and the execution allocate, without those that the request already
  // holds.
  uint64_t memory_bytes() const;
  const wire::ResponseLayout& response_layout() const { return layout_; }

  // Fills `contents`, the places that response_layout() describes. Returns CANCELLED if
  // `interrupted` said so; DynamicQuantize and QuantizeEmbeddings also return the errors of their
  // data (quantd/dynamic_quantize.h, quantd/quantize_embeddings.h). Blocks; uses the executor's
  // threads and this one.
  absl::Status Execute(const Executor& executor, Interrupted interrupted,
                       wire::ResponseContents& contents) const;

  // Fills only y[begin, end). REQUIRES: HasElements of its request; begin is a multiple of
  // kElementsStep, begin <= end <= elements(), and y has room for their bytes.
  absl::Status ExecuteElements(int64_t begin, int64_t end, const Executor& executor,
                               absl::Span<uint8_t> y) const;

 private:
  friend absl::StatusOr<Operation> Plan(const wire::Request& request);
  Operation() = default;

  OperationPlan plan_;
  wire::ResponseLayout layout_;
  absl::Span<const uint8_t> x_;
  // Allocated by the plan, and by the execution if x is not in a message.
  uint64_t other_bytes_ = 0;
};

// Whether y can be made by ExecuteElements: a Quantize or Dequantize without an error report. And
// there are few scales, which each part prepares again.
bool HasElements(const wire::Request& request);

// Checks everything about the request except the elements of x. The operation views `request`,
// which must outlive it and must not move. INVALID_ARGUMENT: as the core's plans say, or y does not
// fit into its place. RESOURCE_EXHAUSTED: the response would be 2 GiB or more, which no protobuf
// message can be.
absl::StatusOr<Operation> Plan(const wire::Request& request);

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_OPERATION_H_
