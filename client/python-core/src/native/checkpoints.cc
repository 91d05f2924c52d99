#include "checkpoints.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "arguments.h"
#include "quantd/shared_executor.h"
#include "run.h"

namespace quantd::python {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenCalls(50);

// Calls a Python function from time to time, and keeps its exception.
class Progress {
 public:
  explicit Progress(const nb::object& function) : function_(function) {}

  void operator()(uint64_t done, uint64_t total, absl::string_view file) {
    const Clock::time_point now = Clock::now();
    if (function_.is_none() || has_raised() || now < next_) return;
    next_ = now + kBetweenCalls;
    const nb::gil_scoped_acquire gil;
    try {
      function_(done, total, nb::str(file.data(), file.size()));
    } catch (nb::python_error& error) {
      raised_.emplace(error);
      has_raised_.store(true);
    }
  }
  bool has_raised() const { return has_raised_.load(std::memory_order_relaxed); }
  // Requires the GIL.
  void Throw() {
    if (raised_.has_value()) throw nb::python_error(*raised_);
  }

 private:
  const nb::object& function_;
  Clock::time_point next_ = Clock::now();
  std::optional<nb::python_error> raised_;
  std::atomic<bool> has_raised_ = false;
};

}  // namespace

std::string ConvertCheckpoint(const checkpoints::ConvertOptions& options, bool dry_run, int threads,
                              const nb::object& progress, const nb::object& fail) {
  Progress shown(progress);
  absl::StatusOr<checkpoints::Report> report;
  const Executor& executor = SharedExecutor(threads);
  const absl::Status status = Run(kLong, nb::none(), [&](Interrupted interrupted) {
    report = dry_run ? checkpoints::DryRun(options)
                     : checkpoints::Convert(
                           options, executor, [&] { return shown.has_raised() || interrupted(); },
                           [&](uint64_t done, uint64_t total, absl::string_view file) {
                             shown(done, total, file);
                           });
    return report.status();
  });
  shown.Throw();
  CheckStatus(status, fail);
  return report->Json();
}

std::vector<std::string> ShardsOfCheckpoint(const std::string& model, const nb::object& fail) {
  absl::StatusOr<std::vector<std::string>> names;
  CheckStatus(Run(kLong, nb::none(),
                  [&](Interrupted) {
                    names = checkpoints::ShardsOf(model);
                    return names.status();
                  }),
              fail);
  return *std::move(names);
}

}  // namespace quantd::python
