// A file of a client, mapped as a whole, shared and guarded. Only for regions.cc.
#ifndef QUANTD_SERVER_REGIONS_MAPPING_H_
#define QUANTD_SERVER_REGIONS_MAPPING_H_

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/regions/sigbus_guard.h"

namespace quantd::regions {

// Identifies a file, whatever its name.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const Identity&) const = default;
};

class Mapping {
 public:
  // `file` is open for reading, and for writing if `writable`; the descriptor is not needed
  // afterwards. Returns RESOURCE_EXHAUSTED if the system or the guard has no room. REQUIRES: size >
  // 0.
  static absl::StatusOr<std::shared_ptr<Mapping>> Map(int file, const struct stat& status,
                                                      bool writable);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool writable() const { return writable_; }
  const Identity& identity() const { return identity_; }
  bool damaged() const { return IsDamaged(slot_); }

  // Maps the pages of a span in bulk before it is written for the first time. One by one they cost
  // four to ten times as much, because the kernel maps no neighbours of a page that is written.
  void Prepare(size_t offset, size_t size, absl::FunctionRef<bool()> stop);

  // Whether the mapping still shows the file with this status. An inode number is not reused while
  // its file is mapped, so it is never that of another file.
  bool Shows(const struct stat& status) const {
    return IsOf(status) && size_ == static_cast<uint64_t>(status.st_size) && !damaged();
  }
  bool IsOf(const struct stat& status) const {
    return identity_ == Identity{status.st_dev, status.st_ino};
  }

  // Guarded by the owner: when the mapping was last asked for, and how many bytes of its file the
  // server may have touched first.
  std::chrono::steady_clock::time_point last_use;
  uint64_t holes = 0;

 private:
  static constexpr size_t kPiece = 1 << 20;
  Mapping(uint8_t* data, const struct stat& status, bool writable, int slot);

  uint8_t* const data_;
  const size_t size_;
  const Identity identity_;
  const bool writable_;
  const int slot_;
  std::unique_ptr<std::atomic<bool>[]> prepared_;  // one per kPiece bytes
};

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_MAPPING_H_
