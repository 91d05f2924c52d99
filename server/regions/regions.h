// Shared memory by name: files in one directory, mapped when a request first names them and kept
// for the next one.
//
//   absl::StatusOr<std::unique_ptr<Regions>> regions = Regions::Open("/dev/shm/quantd", limits);
//   absl::StatusOr<SharedSpan> span =
//       regions->Find("x.shared_memory", "quantd-1-a", 64, 4096, Access::kRead);
//   ... read span->bytes() ...
//   if (span->damaged()) ...  // its client cut the file short: what was read means nothing
//
// A file that was replaced or has another size is seen by the next Find; who has a span of the
// old one keeps it. Mappings that nobody has asked for in a while are given back by Sweep.
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
#include "server/fd/unique_fd.h"
#include "server/regions/mapping.h"
#include "server/regions/name.h"

namespace quantd::regions {

struct Limits {
  size_t mappings = kMaxGuarded / 2;  // the rest: on their way out
  // Of all mappings together. Pages of a region are not this process's memory, but what says where
  // they are is: a 512th.
  uint64_t bytes = uint64_t{1} << 40;
  // Parts of files that nobody has written yet: whoever touches a page first pays for it until the
  // file is gone. Counted where the file system is tmpfs; at most half of the mappings have some.
  uint64_t holes = 0;
  std::chrono::nanoseconds idle = std::chrono::seconds(5);
};

enum class Access : uint8_t { kRead, kWrite };

// A span of a region, mapped as long as this lives. Copies share the mapping.
class SharedSpan {
 public:
  SharedSpan() = default;

  // Anybody who has the file may change them at any time. Not to be written unless it was found
  // for that.
  absl::Span<uint8_t> bytes() const { return bytes_; }
  bool damaged() const { return mapping_ != nullptr && mapping_->damaged(); }
  // Call it before the first `size` bytes are written, where they are many: it saves page faults.
  // Goes on until `stop` says so.
  void Prepare(uint64_t size, absl::FunctionRef<bool()> stop) const;
  // Whether the first `size` bytes of this one are some of the other's as well, under whatever
  // name.
  bool Overlaps(uint64_t size, const SharedSpan& other) const;

 private:
  friend class Regions;
  std::shared_ptr<Mapping> mapping_;  // null: no bytes
  absl::Span<uint8_t> bytes_;
};

// Safe from any thread.
class Regions {
 public:
  // INVALID_ARGUMENT, in one line, when that is no directory which can be opened. Removes what dead
  // clients left there.
  static absl::StatusOr<std::unique_ptr<Regions>> Open(const std::string& directory,
                                                       const Limits& limits);
  // REQUIRES: no span of it is left.
  ~Regions() = default;

  // `field` is what the request calls the reference, for errors. INVALID_ARGUMENT: a bad name, or a
  // span that is not all in the region. NOT_FOUND: no such region, or it is not a regular file.
  // PERMISSION_DENIED: the file's mode. FAILED_PRECONDITION: more of it is not there yet than
  // `Limits.holes` leaves. RESOURCE_EXHAUSTED: too much is mapped and in use.
  absl::StatusOr<SharedSpan> Find(absl::string_view field, absl::string_view name, uint64_t offset,
                                  uint64_t size, Access access);

  // Unmaps what is idle, or gone from the directory, and removes what dead clients left there once
  // a minute. Call it every second. What had holes stays mapped as long as its file is there: so
  // are the pages counted that this process pays for.
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
  // Null: it must be mapped.
  absl::StatusOr<std::shared_ptr<Mapping>> Known(absl::string_view field, const std::string& name,
                                                 const struct stat& status, Access access);
  absl::StatusOr<std::shared_ptr<Mapping>> Map(absl::string_view field, const std::string& name,
                                               Access access, uint64_t offset, uint64_t size);

  // These with mutex_ held. Nobody else can get at a mapping whose only owner is this.
  static bool IsIdle(const std::shared_ptr<Mapping>& mapping) { return mapping.use_count() == 1; }
  // FAILED_PRECONDITION when so many bytes of holes are too many.
  absl::Status SetHoles(absl::string_view field, const std::string& name, Mapping& mapping,
                        uint64_t holes);
  void Replace(const std::string& name, std::shared_ptr<Mapping> mapping);
  void Forget(const Mapping& mapping);
  // Takes idle mappings, the longest idle first, until another one of `size` fits. False when it
  // can't. To be unmapped without the mutex: that takes a millisecond for some.
  bool MakeRoom(uint64_t size, MappingList& out);

  const UniqueFd directory_;
  const bool is_tmpfs_;
  const Limits limits_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Mapping>> current_;
  MappingList replaced_;  // in use, perhaps, but not to be found any more
  // Of both.
  uint64_t bytes_ = 0;
  uint64_t holes_ = 0;
  size_t with_holes_ = 0;
  uint64_t sweeps_ = 0;
};

}  // namespace quantd::regions

#endif  // QUANTD_SERVER_REGIONS_REGIONS_H_
