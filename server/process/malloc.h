// What malloc keeps. glibc's defaults give blocks of some size back to the kernel and fault them in
// again with the next request. So freed memory is kept, and given back when it has not been needed
// for some seconds. Messages and answers are not malloc's (memory/buffer.h): this is about decoded
// values, columns of scales and other scratch.
#ifndef QUANTD_SERVER_PROCESS_MALLOC_H_
#define QUANTD_SERVER_PROCESS_MALLOC_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace quantd::process {

// Sets malloc up to keep what is freed. Call once, first thing in main.
void KeepFreedMemory();

// Resident bytes that no allocation uses; `mapped`: bytes that others have mapped.
uint64_t KeptByMalloc(uint64_t mapped);

// Gives kept memory back while it lives.
class MemoryKeeper {
 public:
  // `every_second` gives back what is not malloc's, and returns the bytes that others have mapped.
  explicit MemoryKeeper(std::function<uint64_t()> every_second);
  ~MemoryKeeper();

 private:
  void Run();

  const std::function<uint64_t()> every_second_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_MALLOC_H_
