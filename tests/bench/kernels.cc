// The kernels, compared with what bounds them. Each thread works on the same tensors repeatedly, so
// that tensors that fit into a cache are in it. See bench.h.
#include <algorithm>
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench.h"
#include "kernels_cases.h"
#include "operation.h"
#include "quantd/targets.h"

namespace quantd::bench {
namespace {

constexpr size_t kPad = 4096;
// For tensors that are larger than the caches, stores bypass these.
constexpr size_t kStreamFrom = size_t{16} << 20;

// The tensors of one thread.
struct Buffers {
  explicit Buffers(size_t bytes) : x(Floats((bytes + kPad) / sizeof(float))), y(bytes + kPad) {}
  Memory x, y;
};

// All threads begin together; each is timed by the CPU time that it used.
Load RunKernel(const std::function<void(const uint8_t*, size_t, uint8_t*, bool)>& run,
               const std::vector<Buffers>& buffers, size_t size, bool stream, double seconds) {
  std::barrier start(static_cast<std::ptrdiff_t>(buffers.size()));
  std::vector<Load> loads(buffers.size());
  const auto work = [&](size_t thread) {
    const Buffers& own = buffers[thread];
    start.arrive_and_wait();
    loads[thread] = Repeat(
        [&] {
          run(own.x.data(), size, own.y.data(), stream);
          return absl::OkStatus();
        },
        seconds, 1);
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < buffers.size(); ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& thread : others) thread.join();
  Load sum;
  for (const Load& load : loads) {
    sum.calls += load.calls;
    sum.seconds += load.seconds / static_cast<double>(loads.size());
  }
  return sum;
}

void MeasureKernel(Report& report, const Kernel& kernel, const std::vector<Buffers>& buffers,
                   size_t bytes) {
  const std::string name = absl::StrCat(kernel.name, ", ", SizeText(bytes), ", ",
                                        Count(static_cast<int>(buffers.size()), "thread"));
  const auto turn = [&buffers, size = bytes / sizeof(float)](const auto& run, bool stream) {
    const double seconds = Seconds(absl::GetFlag(FLAGS_quick) ? 0.003 : 0.008);
    return [=, &buffers] { return RunKernel(run, buffers, size, stream, seconds); };
  };
  const auto limit = [of = kernel.limit](const uint8_t* x, size_t n, uint8_t* y, bool stream) {
    RunLimit(of, x, n, y, stream);
  };
  // The limit is the faster of both kinds of stores.
  report.Measure({name,
                  {{"quantd", turn(kernel.run, bytes >= kStreamFrom)},
                   {LimitName(kernel.limit), turn(limit, false)},
                   {LimitName(kernel.limit), turn(limit, true)}},
                  bytes},
                 Rounds(5, 7));
}

}  // namespace

void RunKernels(Report& report) {
  report.Begin("kernels",
               absl::StrCat("Kernels beside what bounds them, target ",
                            std::string(CurrentTarget()), "; GB/s of FLOAT"),
               Columns::kRates);
  const std::vector<Kernel> kernels = AllKernels();
  for (const int threads : Threads()) {
    for (const size_t bytes : Sizes()) {
      std::vector<Buffers> buffers;
      for (int t = 0; t < threads; ++t) buffers.emplace_back(bytes);
      for (const Kernel& kernel : kernels) {
        // All kernels at 1 MiB; at other sizes only if --filter asks for them.
        const bool all = bytes == 1 << 20 || !absl::GetFlag(FLAGS_filter).empty();
        if ((all || &kernel == &kernels[0]) && report.Wanted(kernel.name)) {
          MeasureKernel(report, kernel, buffers, bytes);
        }
      }
    }
  }
}

}  // namespace quantd::bench
