#include "server/wire/slices.h"

#include <utility>

#include "absl/status/status.h"

namespace quantd::wire {
namespace {

// Below this mean length a slice's bookkeeping (some 100 bytes for the slice and the views into it)
// would outweigh its bytes. HTTP/2 frames are 16 KiB and gRPC reads 8 KiB at a time, so only a
// client that means to gets there.
constexpr size_t kMinMeanSliceBytes = 256;
constexpr size_t kAlwaysFewSlices = 16;

}  // namespace

SliceList::SliceList(std::vector<grpc::Slice> slices) : slices_(std::move(slices)) {
  for (const grpc::Slice& slice : slices_) size_ += slice.size();
}

absl::StatusOr<SliceList> SliceList::Take(grpc::ByteBuffer&& source) {
  grpc::ByteBuffer buffer;
  buffer.Swap(&source);  // it has no move: a copy would keep the slices of `source`
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid()) return SliceList();
  if (!buffer.Dump(&slices).ok()) {
    return absl::InvalidArgumentError("the message can't be decompressed");
  }
  SliceList list(std::move(slices));
  if (list.slice_count() <= kAlwaysFewSlices ||
      list.size() / list.slice_count() >= kMinMeanSliceBytes) {
    return list;
  }
  std::vector<grpc::Slice> joined(1);
  if (!buffer.DumpToSingleSlice(joined.data()).ok()) {
    return absl::InvalidArgumentError("the message can't be decompressed");
  }
  return SliceList(std::move(joined));
}

}  // namespace quantd::wire
