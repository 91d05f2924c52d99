// The queue between threads that log and the descriptor. Only its own thread waits for a slow
// reader. The queue is bounded; when it is full, the oldest line is dropped.
#ifndef QUANTD_SERVER_LOG_LOGGER_H_
#define QUANTD_SERVER_LOG_LOGGER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "server/log/log.h"

namespace quantd::log {

// Thread-safe, except for Close and the destructor.
class Logger {
 public:
  // The most lines that wait: 1 MiB of memory.
  static constexpr size_t kMostWaiting = 1024;

  Logger(int descriptor, Format format);
  // REQUIRES: closed.
  ~Logger();

  void Write(Level level, absl::string_view event, const Fields& fields);
  // Waits until every line is written or lost. Returns false if that takes longer than `most`.
  bool Flush(std::chrono::milliseconds most);
  // Writes the waiting lines, for at most `most`, and drops the rest. Call it once. False: the
  // thread is stuck in a write, and is abandoned together with what it uses.
  bool Close(std::chrono::milliseconds most);

  // Lock-free.
  bool idle() const;
  uint64_t written() const;
  uint64_t dropped() const;  // because the queue was full
  uint64_t failed() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace quantd::log

#endif  // QUANTD_SERVER_LOG_LOGGER_H_
