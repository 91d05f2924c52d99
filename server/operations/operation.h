// A request's work: planned once, then executed into a response. Knows no gRPC: it can be driven by
// anything that has a wire::Request.
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

// Where a part of y may begin: its bytes are whole there, whatever the type.
inline constexpr int64_t kElementsStep = 64;

// Movable; immutable but for BeginElements. Views the request it was planned from.
class Operation {
 public:
  wire::Method method() const { return layout_.method; }
  DataType input_type() const { return BaseOf(plan_).input_type; }
  DataType output_type() const { return BaseOf(plan_).output_type; }
  int64_t elements() const { return BaseOf(plan_).elements; }
  // Packed bytes of x; of y and its scales.
  uint64_t input_bytes() const { return BaseOf(plan_).input_bytes; }
  uint64_t output_bytes() const;

  // Bytes that the response and the execution allocate; not those that the request holds already.
  uint64_t memory_bytes() const;
  const wire::ResponseLayout& response_layout() const { return layout_; }

  // Fills `contents`, the places that response_layout() describes. Fails with CANCELLED when
  // `interrupted` said so; DynamicQuantize and QuantizeEmbeddings also with what their data can
  // have wrong (quantd/dynamic_quantize.h, quantd/quantize_embeddings.h). Blocks; uses the
  // executor's threads and this one.
  absl::Status Execute(const Executor& executor, Interrupted interrupted,
                       wire::ResponseContents& contents) const;

  // Makes ready for ExecuteElements: fills what `contents` has beside y, which it views from then
  // on. `known`: what has been found of x; for a DynamicQuantize, the rest is read now. Fails as
  // Execute does. REQUIRES: HasElements of its request.
  absl::Status BeginElements(const RangeSoFar& known, const Executor& executor,
                             Interrupted interrupted, wire::ResponseContents& contents);
  // Fills y, the place of elements [begin, end) alone. REQUIRES: BeginElements was OK; begin is a
  // multiple of kElementsStep, begin <= end <= elements(), y has their bytes.
  absl::Status ExecuteElements(int64_t begin, int64_t end, const Executor& executor,
                               absl::Span<uint8_t> y) const;

 private:
  friend absl::StatusOr<Operation> Plan(const wire::Request& request);
  Operation() = default;

  OperationPlan plan_;
  wire::ResponseLayout layout_;
  absl::Span<const uint8_t> x_;
  uint64_t own_ranges_bytes_ = 0;  // beside an x that is in no message
  uint64_t plan_bytes_ = 0;        // of the plan
};

// Whether ExecuteElements should make y: nothing else in the response depends on it, and there are
// few scales, which each part prepares anew.
bool HasElements(const wire::Request& request);

// Checks everything about the request but the elements of x. The operation views `request`, which
// must outlive it and stay where it is. INVALID_ARGUMENT as the core's plans say, and when y does
// not fit where it shall go;
// RESOURCE_EXHAUSTED when the response would be 2 GiB or more, which no protobuf message can be.
absl::StatusOr<Operation> Plan(const wire::Request& request);

}  // namespace quantd::operations

#endif  // QUANTD_SERVER_OPERATIONS_OPERATION_H_
