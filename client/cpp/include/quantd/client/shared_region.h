// Memory that both the client and the server, on one node, have mapped: tensors in it are not sent.
//
//   absl::StatusOr<SharedRegion> region = SharedRegion::Create(x_bytes + y_bytes);
//   ... write x to region->span() ...
//   Tensor x = Tensor::In(region->At(0, x_bytes), v1::DATA_TYPE_FLOAT, {rows, columns});
//   auto result = client.Quantize(x, scale, {}, {.output = region->At(x_bytes, y_bytes)});
//   ... y is in region->span().subspan(x_bytes) ...
//
// A region is a file in a directory in memory (tmpfs) that the server was given as
// --shared_memory_dir. Its name is quantd-<pid>-<random>. All of it is allocated at once, so its
// pages count as this process's memory and not as the server's. It is locked as long as it lives:
// the server removes files that a killed client left.
#ifndef QUANTD_CLIENT_SHARED_REGION_H_
#define QUANTD_CLIENT_SHARED_REGION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace quantd::client {

// Where a tensor lies.
struct SharedSpan {
  std::string region;
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

// Owns the file and its mapping, and removes both at its end. Movable. If a program writes to the
// region while a call reads it, the response is undefined, but nothing else is harmed.
class SharedRegion {
 public:
  // `directory`: empty means that of QUANTD_SHARED_MEMORY_DIR. INVALID_ARGUMENT without any;
  // otherwise what the system said, such as RESOURCE_EXHAUSTED when there is no room.
  // REQUIRES: bytes > 0.
  static absl::StatusOr<SharedRegion> Create(size_t bytes, std::string directory = "");
  SharedRegion(SharedRegion&& other) noexcept;
  SharedRegion& operator=(SharedRegion&& other) noexcept;
  ~SharedRegion();

  const std::string& name() const { return name_; }
  // All of it, zeros at first. Aligned to a page.
  absl::Span<uint8_t> span() const { return {data_, size_}; }
  // A part of it, for a request. A tensor may start at any offset.
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
