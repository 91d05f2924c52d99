// Splits a tensor into pieces that have all of its channels, for calls that only count the values
// of each channel: it does not matter which piece contains a value.
#ifndef QUANTD_CLIENT_CPP_SPLIT_CHANNEL_PIECES_H_
#define QUANTD_CLIENT_CPP_SPLIT_CHANNEL_PIECES_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantd/v1/tensor.pb.h"

namespace quantd::client::split {

// Calls `send` with pieces of a tensor, of the same rank and of at most `most_bytes` if possible
// (the smallest piece is one value of each channel), until a call fails. The channels are the
// indices along `axis`; unset: one channel. A tensor that is not FLOAT, FLOAT16, BFLOAT16 or INT32,
// lacks that axis, or does not have the bytes of its shape is sent unchanged.
absl::Status ForEachChannelPiece(
    v1::DataType type, absl::Span<const int64_t> shape, absl::string_view data,
    std::optional<int64_t> axis, uint64_t most_bytes,
    absl::FunctionRef<absl::Status(absl::Span<const int64_t> shape, absl::string_view data)> send);

}  // namespace quantd::client::split

#endif  // QUANTD_CLIENT_CPP_SPLIT_CHANNEL_PIECES_H_
