// What memory the process keeps. glibc's defaults give the buffers of every large request back to
// the kernel and fault them in again with the next one: 120 to 150 page faults for each request of
// 1 MiB, half of the throughput. So freed memory is kept for the next request, and given back when
// the requests of the last seconds did not need it.
#ifndef QUANTD_SERVER_LIFECYCLE_MEMORY_H_
#define QUANTD_SERVER_LIFECYCLE_MEMORY_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace quantd::lifecycle {

// Sets malloc up to keep what is freed. Call once, first thing in main.
void KeepFreedMemory();

// Resident bytes that no allocation uses: what malloc keeps for the next requests.
uint64_t KeptBytes();

// Gives kept memory back while it lives.
class MemoryKeeper {
 public:
  // `take_peak_bytes` says how many bytes requests used at most since it was called last.
  explicit MemoryKeeper(std::function<uint64_t()> take_peak_bytes);
  ~MemoryKeeper();

 private:
  void Run();

  const std::function<uint64_t()> take_peak_bytes_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace quantd::lifecycle

#endif  // QUANTD_SERVER_LIFECYCLE_MEMORY_H_
