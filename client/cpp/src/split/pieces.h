// What all ways to cut share.
#ifndef QUANTD_CLIENT_CPP_SPLIT_PIECES_H_
#define QUANTD_CLIENT_CPP_SPLIT_PIECES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "boxes.h"
#include "elements.h"
#include "grid.h"
#include "quantd/client/options.h"
#include "split.h"

namespace quantd::client::split {

// Everything in a message that is neither elements nor scales.
inline constexpr uint64_t kEnvelopeBytes = 4096;

// Bits that an element, and a block, take in a request and in its response.
struct PieceCost {
  int request_element_bits = 0;
  int request_block_bits = 0;
  int response_element_bits = 0;
  int response_block_bits = 0;

  MessageSizes Of(int64_t elements, int64_t blocks) const;
};

// Runs work(0) to work(count - 1) on a few threads. After a failure no further one is started; the
// error of the smallest index is returned.
absl::Status RunPieces(size_t count, const std::function<absl::Status(size_t index)>& work);

absl::Status TooLarge(const Grid& grid, const ServerLimits& limits);

void SetMessage(v1::DataType type, const Dimensions& shape, std::string bytes, v1::Tensor* tensor);

// INTERNAL when a response's tensor is not of as many elements, of `type`, as it must be: nothing
// else may believe a response.
absl::Status CheckResponse(const v1::Tensor& tensor, absl::string_view field, v1::DataType type,
                           int64_t elements);

// The output type that an unset one means.
v1::DataType OutputType(v1::DataType given, const std::optional<Tensor>& zero_point);

template <typename Request>
void SetBlockShape(const Dimensions& block_shape, Request* request) {
  request->clear_axis();
  request->clear_block_size();
  request->clear_block_shape();
  request->mutable_block_shape()->Add(block_shape.begin(), block_shape.end());
}

// A piece's error, told from which element on it is one.
absl::Status OfPiece(const absl::Status& status, const Grid& grid, const Box& box);

// DynamicQuantize of what CutIntoBoxes cannot cut; see large_blocks.cc. Fills `result`, whose y and
// scale have their types, shapes and room.
absl::Status QuantizeLargeBlocks(const Sender& sender, const Tensor& x, const Grid& grid,
                                 const DynamicQuantizeOptions& options, bool two_level,
                                 Quantized& result);

}  // namespace quantd::client::split

#endif  // QUANTD_CLIENT_CPP_SPLIT_PIECES_H_
