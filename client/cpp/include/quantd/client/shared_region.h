// Memory that the client and the server on one node have both mapped: tensors in it are not sent.
//
//   absl::StatusOr<SharedRegion> region = SharedRegion::Create(x_bytes + y_bytes);
//   ... write x to region->span() ...
//   Tensor x = Tensor::In(region->At(0, x_bytes), v1::DATA_TYPE_FLOAT, {rows, columns});
//   auto result = client.Quantize(x, scale, {}, {.output = region->At(x_bytes, y_bytes)});
//   ... y is in region->span().subspan(x_bytes) ...
//
// A region is a file in a memory directory (tmpfs), which must be the server's --shared_memory_dir.
// Its name is quantd-<pid>-<random>. It is allocated completely when it is created, so its pages
// count as this process's memory and not as the server's. It is locked as long as it lives, because
// the server removes files that killed clients left.
#ifndef QUANTD_CLIENT_SHARED_REGION_H_
#define QUANTD_CLIENT_SHARED_REGION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace quantd::client {

// The place of a tensor.
struct SharedSpan {
  std::string region;
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

// Owns the file and its mapping, and removes both when it is destroyed. Movable. If a program
// writes to the region while a call reads it, the response is undefined, but there is no other
// harm.
class SharedRegion {
 public:
  // `directory`: empty means QUANTD_SHARED_MEMORY_DIR. Returns INVALID_ARGUMENT if there is none;
  // otherwise the system's error, such as RESOURCE_EXHAUSTED if there is no room. REQUIRES: bytes >
  // 0.
  static absl::StatusOr<SharedRegion> Create(size_t bytes, std::string directory = "");
  SharedRegion(SharedRegion&& other) noexcept;
  SharedRegion& operator=(SharedRegion&& other) noexcept;
  ~SharedRegion();

  const std::string& name() const { return name_; }
  // The whole region, initially zeros. Aligned to a page.
  absl::Span<uint8_t> span() const { return {data_, size_}; }
  // A part of the region, for a request. A tensor may start at any offset.
  SharedSpan At(uint64_t offset, uint64_t byte_size) const { return {name_, offset, byte_size}; }

 private:
  SharedRegion() = default;

  std::string path_;
  std::string name_;
  int file_ = -1;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_SHARED_REGION_H_
