// Requests for pieces of a tensor: how many bytes they take, what they hold, and running them a few
// at a time.
#ifndef QUANTD_CLI_PIECES_H_
#define QUANTD_CLI_PIECES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grid.h"
#include "quantd/data_type.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::cli {

// How large a request and an answer may be.
struct PieceLimits {
  uint64_t message_bytes = 0;  // the server's limit
  uint64_t budget_bytes = 0;   // the server's memory for a request and its answer; 0: not known
  uint64_t wanted_bytes = 0;   // what the user asked for; 0: as the server allows
};

// Bits that an element, and a block, take in a request and in its answer.
struct PieceCost {
  int request_element_bits = 0;
  int request_block_bits = 0;
  int answer_element_bits = 0;
  int answer_block_bits = 0;
};

// Cuts a tensor so that every request and answer is within the limits: one piece when the whole is,
// else pieces of 16 MiB. RESOURCE_EXHAUSTED when the smallest possible piece is larger than what
// the server allows; larger than what the user asked for it may be only if `stretch`.
absl::StatusOr<PiecePlan> CutTensor(const BlockGrid& grid, Cut cut, const PieceCost& cost,
                                    const PieceLimits& limits, bool stretch);

// Runs work(0) to work(count - 1) on a few threads, each as soon as one is free. After a failure no
// further one is started; the error of the smallest index is returned.
absl::Status RunPieces(size_t count, absl::FunctionRef<absl::Status(size_t index)> work);

void SetTensor(DataType type, absl::Span<const int64_t> shape, std::string bytes,
               v1::Tensor* tensor);

// Packed scales, or zero points, of a whole tensor.
struct ScaleTensor {
  DataType type = DataType::kUnspecified;
  std::string bytes;
};

// Those of the blocks of `box`, packed.
std::string CutScales(const ScaleTensor& scales, const BlockGrid& grid, const Box& box);

// As a tensor of a request that holds `box` of a tensor in several pieces.
void SetPieceScales(const ScaleTensor& scales, const BlockGrid& grid, const Box& box,
                    v1::Tensor* tensor);

// Says the granularity of the whole in terms of the piece.
template <typename Request>
void SetPieceGranularity(const BlockGrid& grid, const Box& box, Request* request) {
  request->clear_axis();
  request->clear_block_size();
  request->clear_block_shape();
  if (grid.scales == 1) return;
  const Shape block_shape = grid.PieceBlockShape(box);
  request->mutable_block_shape()->Add(block_shape.begin(), block_shape.end());
}

// The bytes of an answer's tensor. INTERNAL when it is not of the type and the number of elements
// that it must be: nothing else may believe an answer.
absl::StatusOr<std::string> TakeBytes(v1::Tensor* tensor, absl::string_view field, DataType type,
                                      int64_t elements);

template <typename Request>
void SetGranularity(const Granularity& granularity, Request* request) {
  if (granularity.axis.has_value()) request->set_axis(*granularity.axis);
  request->set_block_size(granularity.block_size);
  request->mutable_block_shape()->Add(granularity.block_shape.begin(),
                                      granularity.block_shape.end());
}

// The opposite of SetGranularity.
template <typename Request>
Granularity GranularityOf(const Request& request) {
  Granularity granularity;
  if (request.has_axis()) granularity.axis = request.axis();
  granularity.block_size = request.block_size();
  granularity.block_shape.assign(request.block_shape().begin(), request.block_shape().end());
  return granularity;
}

}  // namespace quantd::cli

#endif  // QUANTD_CLI_PIECES_H_
