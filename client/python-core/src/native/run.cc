#include "run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace quantd::python {
namespace {

using Clock = std::chrono::steady_clock;

// Some 10 us of work: releasing and taking the GIL could cost more if other threads want it.
constexpr uint64_t kShortBytes = 64 * 1024;
constexpr std::chrono::milliseconds kSignalPeriod(50);

std::optional<Clock::time_point> Deadline(nb::handle timeout) {
  if (timeout.is_none()) return std::nullopt;
  const double seconds = PyFloat_AsDouble(timeout.ptr());
  if (seconds == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!(seconds <= 1e9)) return std::nullopt;  // NaN: as in gRPC, a deadline that never passes
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::max(seconds, 0.0)));
}

absl::Status DeadlineExceeded() { return absl::DeadlineExceededError("Deadline Exceeded"); }

// Whether the work is still wanted. The calling thread asks Python for signals from time to time.
class Stop {
 public:
  explicit Stop(std::optional<Clock::time_point> deadline) : deadline_(deadline) {}

  bool operator()() {
    const Clock::time_point now = Clock::now();
    if (deadline_.has_value() && now >= *deadline_) late_.store(true, std::memory_order_relaxed);
    if (late_.load(std::memory_order_relaxed)) return true;
    if (std::this_thread::get_id() != caller_) return false;
    if (raised_) return true;
    if (now < next_look_) return false;
    next_look_ = now + kSignalPeriod;
    const nb::gil_scoped_acquire gil;
    raised_ = PyErr_CheckSignals() != 0;
    return raised_;
  }
  bool late() const { return late_.load(std::memory_order_relaxed); }
  bool raised() const { return raised_; }

 private:
  const std::optional<Clock::time_point> deadline_;
  const std::thread::id caller_ = std::this_thread::get_id();
  Clock::time_point next_look_ = Clock::now() + kSignalPeriod;  // the caller's only, like raised_
  bool raised_ = false;
  std::atomic<bool> late_ = false;
};

}  // namespace

absl::Status Run(uint64_t bytes, nb::handle timeout,
                 absl::FunctionRef<absl::Status(Interrupted)> work) {
  const std::optional<Clock::time_point> deadline = Deadline(timeout);
  if (deadline.has_value() && Clock::now() >= *deadline) return DeadlineExceeded();
  if (bytes <= kShortBytes) return work([] { return false; });
  Stop stop(deadline);
  absl::Status status;
  {
    const nb::gil_scoped_release no_gil;
    status = work([&stop] { return stop(); });
  }
  if (stop.raised()) throw nb::python_error();
  if (absl::IsCancelled(status) && stop.late()) return DeadlineExceeded();
  return status;
}

}  // namespace quantd::python
