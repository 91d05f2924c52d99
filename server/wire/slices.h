// The bytes of one message as gRPC hands them over: a list of reference-counted slices, not copied.
//
//   absl::StatusOr<SliceList> message = SliceList::Take(std::move(buffer));
#ifndef QUANTD_SERVER_WIRE_SLICES_H_
#define QUANTD_SERVER_WIRE_SLICES_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace quantd::wire {

// Views into it stay valid while it lives, also when it is moved (a small slice holds its bytes in
// itself, so the slices stay where they are on the heap). Const methods are safe from any thread.
class SliceList {
 public:
  SliceList() = default;
  explicit SliceList(std::vector<grpc::Slice> slices);
  SliceList(SliceList&&) = default;
  SliceList& operator=(SliceList&&) = default;
  SliceList(const SliceList&) = delete;
  SliceList& operator=(const SliceList&) = delete;

  // The slices of `source`, which is empty then. A message that came in very many tiny pieces is
  // copied into one, so that a list of pieces never outweighs the message. INVALID_ARGUMENT when
  // the buffer is compressed and can't be decompressed.
  static absl::StatusOr<SliceList> Take(grpc::ByteBuffer&& source);

  size_t size() const { return size_; }  // bytes of the message
  size_t slice_count() const { return slices_.size(); }
  absl::Span<const uint8_t> slice(size_t index) const {
    return {slices_[index].begin(), slices_[index].size()};
  }

 private:
  std::vector<grpc::Slice> slices_;
  size_t size_ = 0;
};

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_SLICES_H_
