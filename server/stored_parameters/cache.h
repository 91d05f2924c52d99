// Sets in memory: those that were used last, up to a number of bytes, and those that calls are
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

// Safe from any thread.
class Cache {
 public:
  // Keeps sets of `keep_bytes` together; those kept and those that are used beside them take
  // `most_bytes` at most. REQUIRES: keep_bytes <= most_bytes.
  Cache(uint64_t keep_bytes, uint64_t most_bytes)
      : keep_bytes_(keep_bytes), most_bytes_(most_bytes) {}

  // Null: it is not here.
  SetPointer Find(const std::string& reference);

  uint64_t most_bytes() const { return most_bytes_; }
  // Whether a set of `bytes`, and `more` while it is made, may be read now. Lets go of others to
  // make room for it.
  bool MakeRoom(uint64_t bytes, uint64_t more);
  // Keeps it, unless it is larger than all that is kept. One of the same reference that is here
  // already stays.
  SetPointer Add(std::unique_ptr<wire::StoredSet> set);

  // Bytes of the sets that are kept, and of all that live.
  uint64_t kept_bytes() const;
  uint64_t live_bytes() const { return live_->load(std::memory_order_relaxed); }

 private:
  using List = std::list<SetPointer>;
  static uint64_t Footprint(const wire::StoredSet& set);
  void DropTo(uint64_t bytes);  // REQUIRES: mutex_ held

  const uint64_t keep_bytes_;
  const uint64_t most_bytes_;
  // A set may live longer than this.
  const std::shared_ptr<std::atomic<uint64_t>> live_ = std::make_shared<std::atomic<uint64_t>>(0);
  mutable std::mutex mutex_;
  List used_;  // the one used last is the first
  std::unordered_map<std::string, List::iterator> sets_;
  uint64_t kept_ = 0;
};

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_CACHE_H_
