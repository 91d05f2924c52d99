// The queue between those who log and the descriptor, with a thread of its own that alone waits for
// a slow reader. Bounded; when it is full the oldest line goes.
#ifndef QUANTD_SERVER_LOG_LOGGER_H_
#define QUANTD_SERVER_LOG_LOGGER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "server/log/log.h"

namespace quantd::log {

// Safe from any thread, but for Close and the destructor.
class Logger {
 public:
  // Lines that may wait: 1 MiB of memory.
  static constexpr size_t kMostWaiting = 1024;

  Logger(int descriptor, Format format);
  // REQUIRES: closed.
  ~Logger();

  void Write(Level level, absl::string_view event, const Fields& fields);
  // Waits until all is written or lost. False: that took longer.
  bool Flush(std::chrono::milliseconds most);
  // Writes what waits, for `most` at most; what is left then is dropped. Call once. False: the
  // thread is stuck in a write that does not end, and is left behind with what it uses.
  bool Close(std::chrono::milliseconds most);

  // Takes no lock.
  bool idle() const;
  uint64_t written() const;
  uint64_t dropped() const;  // the queue was full
  uint64_t failed() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace quantd::log

#endif  // QUANTD_SERVER_LOG_LOGGER_H_
