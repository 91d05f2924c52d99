#include "c_places.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "quantd/shared_executor.h"

namespace quantd::c {

absl::Status CheckApart(absl::Span<const Place> places, size_t inputs) {
  for (size_t output = inputs; output < places.size(); ++output) {
    const absl::Span<const uint8_t> a = places[output].bytes;
    for (size_t other = 0; other < output; ++other) {
      const absl::Span<const uint8_t> b = places[other].bytes;
      const auto begin_a = reinterpret_cast<uintptr_t>(a.data());
      const auto begin_b = reinterpret_cast<uintptr_t>(b.data());
      if (a.empty() || b.empty()) continue;
      if (begin_a >= begin_b + b.size() || begin_b >= begin_a + a.size()) continue;
      return FieldError(places[output].field,
                        absl::StrCat(places[output].field, " (", a.size(), " bytes at ",
                                     absl::Hex(begin_a), ") overlaps ", places[other].field, " (",
                                     b.size(), " bytes at ", absl::Hex(begin_b), ")"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckThreads(int32_t threads) {
  if (threads >= 0) return absl::OkStatus();
  return FieldError("threads", absl::StrCat("threads is ", threads, ", 0 is the least"));
}

const Executor& PoolOf(int32_t threads) {
  // Made in the first call: oneTBB limits a process's workers to those of the largest pool, and a
  // program that uses oneTBB itself must not be limited to fewer than its CPUs.
  static const int all =
      SharedExecutor(std::min(Executor::DefaultThreads(), kMostSharedThreads)).threads();
  return SharedExecutor(threads == 0 ? all : std::min(threads, all));
}

}  // namespace quantd::c
