// Sets in memory: the most recently used ones, up to a number of bytes, and those that calls are
// using now.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_CACHE_H_
#define QUANTD_SERVER_STORED_PARAMETERS_CACHE_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "absl/strings/string_view.h"
#include "server/wire/stored_set.h"

namespace quantd::stored_parameters {

using SetPointer = std::shared_ptr<const wire::StoredSet>;

// Thread-safe.
class Cache {
 public:
  // Keeps sets of at most `keep_bytes` in all. With sets that are in use but not kept they take at
  // most `most_bytes`. REQUIRES: keep_bytes <= most_bytes.
  Cache(uint64_t keep_bytes, uint64_t most_bytes)
      : keep_bytes_(keep_bytes), most_bytes_(most_bytes) {}

  // Null if the set is not in memory.
  SetPointer Find(const std::string& reference);

  uint64_t most_bytes() const { return most_bytes_; }
  // Whether a set of `bytes`, plus `more` while it is made, may be read now. Drops other sets to
  // make room for it.
  bool MakeRoom(uint64_t bytes, uint64_t more);
  // Keeps the set, unless it is larger than keep_bytes. If a set with the same reference is kept
  // already, that one stays.
  SetPointer Add(std::unique_ptr<wire::StoredSet> set);

  // Bytes of kept sets, and of all sets that are alive.
  uint64_t kept_bytes() const;
  uint64_t live_bytes() const { return live_->load(std::memory_order_relaxed); }

 private:
  using List = std::list<SetPointer>;
  static uint64_t Footprint(const wire::StoredSet& set);
  void DropTo(uint64_t bytes);  // REQUIRES: mutex_ held

  const uint64_t keep_bytes_;
  const uint64_t most_bytes_;
  // Shared, because a set may outlive the cache.
  const std::shared_ptr<std::atomic<uint64_t>> live_ = std::make_shared<std::atomic<uint64_t>>(0);
  mutable std::mutex mutex_;
  List used_;  // most recently used first
  std::unordered_map<std::string, List::iterator> sets_;
  uint64_t kept_ = 0;
};

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_CACHE_H_
