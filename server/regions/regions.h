// Shared memory by name: files in one directory. A file is mapped when a request first names it,
// and stays mapped for the next request.
//
//   absl::StatusOr<std::unique_ptr<Regions>> regions = Regions::Open("/dev/shm/quantd", limits);
//   absl::StatusOr<SharedSpan> span =
//       regions->Find("x.shared_memory", "quantd-1-a", 64, 4096, Access::kRead);
//   ... read span->bytes() ...
//   if (span->damaged()) ...  // the client truncated the file: what was read is meaningless
//
// The next Find notices if a file was replaced or its size has changed; spans of the old one stay
// valid. Sweep unmaps what has not been used for a while.
#ifndef QUANTD_SERVER_REGIONS_REGIONS_H_
#define QUANTD_SERVER_REGIONS_REGIONS_H_

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/net/unique_fd.h"
#include "server/regions/sigbus_guard.h"

namespace quantd::regions {

class Mapping;

struct Limits {
  size_t mappings = kMaxGuarded / 2;  // the other half: mappings that are about to be removed
  // The most bytes of all mappings. Pages of a region are not this process's memory, but its page
  // tables are: a 512th.
  uint64_t bytes = uint64_t{1} << 40;
  // The most bytes in parts of files that have not been written yet: the process that touches a
  // page first is charged for it until the file is gone. Counted on tmpfs; at most half of the
  // mappings have some.
  uint64_t holes = 0;
  std::chrono::nanoseconds idle = std::chrono::seconds(5);
};

enum class Access : uint8_t { kRead, kWrite };

// A span of a region, mapped as long as this object lives. Copies share the mapping.
class SharedSpan {
 public:
  SharedSpan() = default;

  // Any process that has the file may change the bytes at any time. Do not write to a span that was
  // found for reading.
  absl::Span<uint8_t> bytes() const { return bytes_; }
  bool damaged() const;
  // Call this before the first `size` bytes are written, if they are many: it saves page faults. It
  // ends early if `stop` returns true.
  void Prepare(uint64_t size, absl::FunctionRef<bool()> stop) const;
  // Whether the first `size` bytes of this span overlap the other span, under whatever
  // name.
  bool Overlaps(uint64_t size, const SharedSpan& other) const;

 private:
  friend class Regions;
  std::shared_ptr<Mapping> mapping_;  // null: an empty span
  absl::Span<uint8_t> bytes_;
};

// Thread-safe.
class Regions {
 public:
  // Returns INVALID_ARGUMENT, in one line, if `directory` is not a directory or can't be opened.
  // Removes files that dead clients left there.
  static absl::StatusOr<std::unique_ptr<Regions>> Open(const std::string& directory,
                                                       const Limits& limits);
  // REQUIRES: all spans are gone.
  ~Regions() = default;

  // `field` is the request's field that names the region, for errors. INVALID_ARGUMENT: a bad name,
  // or the span is not entirely in the region. NOT_FOUND: no such region, or not a regular file.
  // PERMISSION_DENIED: the file's mode. FAILED_PRECONDITION: the region has more unwritten bytes
  // than `Limits.holes` leaves. RESOURCE_EXHAUSTED: too much is mapped and in use, or `peer` would
  // have more than its share of that (scheduling/places.h).
  absl::StatusOr<SharedSpan> Find(absl::string_view field, absl::string_view name, uint64_t offset,
                                  uint64_t size, Access access, uint64_t peer = 0);

  // Unmaps regions that are idle or gone from the directory, and removes leftovers of dead clients
  // once a minute. Call this every second. A region with holes stays mapped as long as its file
  // exists, so that the pages that this process is charged for stay counted.
  void Sweep();

  size_t mappings() const;
  uint64_t mapped_bytes() const;
  uint64_t hole_bytes() const;

 private:
  using Clock = std::chrono::steady_clock;
  using MappingList = std::vector<std::shared_ptr<Mapping>>;
  Regions(UniqueFd directory, bool is_tmpfs, const Limits& limits)
      : directory_(std::move(directory)), is_tmpfs_(is_tmpfs), limits_(limits) {}

  absl::StatusOr<struct stat> Look(absl::string_view field, const std::string& name) const;
  void Unmap();
  uint64_t HolesOf(const struct stat& status) const;
  // Null: the region must be mapped.
  absl::StatusOr<std::shared_ptr<Mapping>> Known(absl::string_view field, const std::string& name,
                                                 const struct stat& status, Access access);
  absl::StatusOr<std::shared_ptr<Mapping>> Map(absl::string_view field, const std::string& name,
                                               Access access, uint64_t offset, uint64_t size,
                                               uint64_t peer);

  // These require mutex_. If this object is a mapping's only owner, no other thread can get it.
  static bool IsIdle(const std::shared_ptr<Mapping>& mapping) { return mapping.use_count() == 1; }
  // Returns FAILED_PRECONDITION if the mapping would have too many bytes of holes.
  absl::Status SetHoles(absl::string_view field, const std::string& name, Mapping& mapping,
                        uint64_t holes);
  void Replace(const std::string& name, std::shared_ptr<Mapping> mapping);
  void Forget(const Mapping& mapping);
  // Whether the peer leaves others their part with one more mapping in use.
  bool WithinShare(uint64_t peer) const;
  // Takes idle mappings, the longest idle first, until another one of `size` fits. Returns false if
  // that is impossible. The caller unmaps them without the mutex: for some this takes a
  // millisecond.
  bool MakeRoom(uint64_t size, MappingList& out);

  const UniqueFd directory_;
  const bool is_tmpfs_;
  const Limits limits_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Mapping>> current_;
  MappingList replaced_;  // may be in use, but Find no longer returns them
  // Of current_ and replaced_ together.
  uint64_t bytes_ = 0;
  uint64_t holes_ = 0;
  size_t with_holes_ = 0;
  uint64_t sweeps_ = 0;
};

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_REGIONS_H_
