// Shared by all ways to split.
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

// Everything in a message except elements and scales.
inline constexpr uint64_t kEnvelopeBytes = 4096;

// The bits of an element, and of a block, in a request and in its response.
struct PieceCost {
  int request_element_bits = 0;
  int request_block_bits = 0;
  int response_element_bits = 0;
  int response_block_bits = 0;

  MessageSizes Of(int64_t elements, int64_t blocks) const;
};

// Runs work(0) to work(count - 1) on a few threads. After a failure no further one starts; returns
// the error with the smallest index.
absl::Status RunPieces(size_t count, const std::function<absl::Status(size_t index)>& work);

absl::Status TooLarge(const Grid& grid, const ServerLimits& limits);

void SetMessage(v1::DataType type, const Dimensions& shape, std::string bytes, v1::Tensor* tensor);

// Returns INTERNAL if a response's tensor does not have the required number of elements and `type`;
// responses are not trusted otherwise.
absl::Status CheckResponse(const v1::Tensor& tensor, absl::string_view field, v1::DataType type,
                           int64_t elements);

// The output type if none is set.
v1::DataType OutputType(v1::DataType given, const std::optional<Tensor>& zero_point);

template <typename Request>
void SetBlockShape(const Dimensions& block_shape, Request* request) {
  request->clear_axis();
  request->clear_block_size();
  request->clear_block_shape();
  request->mutable_block_shape()->Add(block_shape.begin(), block_shape.end());
}

// The error of a piece, with the index of the piece's first element.
absl::Status OfPiece(const absl::Status& status, const Grid& grid, const Box& box);

// DynamicQuantize for blocks that CutIntoBoxes can't cut; see large_blocks.cc. Fills `result`,
// whose y and scale have their types, shapes and sizes.
absl::Status QuantizeLargeBlocks(const Sender& sender, const Tensor& x, const Grid& grid,
                                 const DynamicQuantizeOptions& options, bool two_level,
                                 Quantized& result);

}  // namespace quantd::client::split

#endif  // QUANTD_CLIENT_CPP_SPLIT_PIECES_H_
