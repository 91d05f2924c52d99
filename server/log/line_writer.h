// Writes lines to a descriptor from a thread of its own, so that nobody else waits for a slow
// reader. The queue is bounded; when it is full, the oldest line is dropped.
#ifndef QUANTD_SERVER_LOG_LINE_WRITER_H_
#define QUANTD_SERVER_LOG_LINE_WRITER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"

namespace quantd::log {

// Thread-safe, except for Close and the destructor.
class LineWriter {
 public:
  // At most `most` lines wait. `lost_line` makes the line that says how many lines the reader has
  // missed; null: none. `owned`: closed when the thread has ended, after which nothing is written.
  LineWriter(int descriptor, size_t most,
             std::function<std::string(uint64_t lost)> lost_line = nullptr,
             std::shared_ptr<const void> owned = nullptr);
  // REQUIRES: closed.
  ~LineWriter();

  // Queues a line that ends with '\n'. A line that does not fit in memory counts as failed.
  void Write(absl::FunctionRef<std::string()> make);
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

#endif  // QUANTD_SERVER_LOG_LINE_WRITER_H_
