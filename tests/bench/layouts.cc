// Weights in memory to layouts and back, compared with a copy of the weight. See bench.h.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench.h"
#include "operation.h"
#include "quantd/convert_weight.h"
#include "quantd/layout.h"

namespace quantd::bench {
namespace {

bool Never() { return false; }

// A square BFLOAT16 weight, its parts, and the weight that is decoded from them.
class Weight {
 public:
  Weight(const LayoutInfo& info, const Memory& bytes, int64_t side, Memory& back)
      : plan_(*PlanWeight(
            {.layout = info.layout, .type = DataType::kBfloat16, .shape = {side, side}})),
        source_(absl::MakeConstSpan(bytes.data(), plan_.weight_bytes)),
        back_(absl::MakeSpan(back.data(), plan_.weight_bytes)) {
    for (const LayoutPart& part : WeightParts(plan_)) {
      memory_.emplace_back(part.bytes);
      const Memory& memory = memory_.back();
      sinks_.push_back(std::make_unique<MemorySink>(absl::MakeSpan(memory.data(), part.bytes)));
      sources_.push_back(
          std::make_unique<MemorySource>(absl::MakeConstSpan(memory.data(), part.bytes)));
      sink_pointers_.push_back(sinks_.back().get());
      source_pointers_.push_back(sources_.back().get());
    }
  }

  // Includes the first pass that some layouts need.
  absl::Status Encode(const Executor& executor) {
    absl::StatusOr<WeightFacts> facts = MeasureWeight(plan_, source_, executor, Never);
    if (!facts.ok()) return facts.status();
    facts->offset = 0;  // the text has the same length with 0
    return EncodeWeight(plan_, *facts, source_, sink_pointers_, executor, Never);
  }
  absl::Status Decode(const Executor& executor) {
    return DecodeWeight(plan_, {}, source_pointers_, DataType::kBfloat16, back_, executor, Never);
  }

 private:
  WeightPlan plan_;
  MemorySource source_;
  MemorySink back_;
  std::vector<Memory> memory_;
  std::vector<std::unique_ptr<MemorySink>> sinks_;
  std::vector<std::unique_ptr<MemorySource>> sources_;
  std::vector<ByteSink*> sink_pointers_;
  std::vector<const ByteSource*> source_pointers_;
};

absl::Status Copy(const Memory& from, const Memory& to, size_t bytes, const Executor& executor) {
  const auto tasks = static_cast<size_t>(executor.threads());
  executor.ParallelFor(tasks, [&](size_t task) {
    const size_t begin = bytes / tasks * task;
    const size_t end = task + 1 == tasks ? bytes : bytes / tasks * (task + 1);
    std::memcpy(to.data() + begin, from.data() + begin, end - begin);
  });
  return absl::OkStatus();
}

}  // namespace

void RunLayouts(Report& report) {
  constexpr int64_t kSide = 4096;
  constexpr size_t kBytes = kSide * kSide * 2;
  report.Begin("layouts", "Layouts: BFLOAT16 weights of 4096 x 4096 beside a copy of them",
               Columns::kRates);
  // The upper halves of random FLOATs are random BFLOAT16s.
  const Memory floats = Floats(kSide * kSide);
  const Memory bytes(kBytes);
  for (size_t i = 0; i < kBytes / 2; ++i) {
    std::memcpy(bytes.data() + 2 * i, floats.data() + 4 * i + 2, 2);
  }
  Memory back(kBytes);
  const double seconds = Seconds(absl::GetFlag(FLAGS_quick) ? 0.01 : 0.03);
  for (const int threads : Threads()) {
    const Executor executor(threads);
    executor.StartThreads();
    const auto side = [&](const char* name, auto run) {
      return Side{name, [&executor, seconds, threads, run] {
                    return Repeat([&] { return run(executor); }, seconds, threads);
                  }};
    };
    const Side copy =
        side("copy", [&](const Executor& on) { return Copy(bytes, back, kBytes, on); });
    for (const LayoutInfo& info : AllLayouts()) {
      if (!info.encodes) continue;
      const std::string name = absl::StrCat(info.name, ", ", Count(threads, "thread"));
      if (!report.Wanted(absl::StrCat("encode ", name)) &&
          !report.Wanted(absl::StrCat("decode ", name))) {
        continue;
      }
      Weight weight(info, bytes, kSide, back);
      const auto encode = [&](const Executor& on) { return weight.Encode(on); };
      const auto decode = [&](const Executor& on) { return weight.Decode(on); };
      report.Measure({absl::StrCat("encode ", name), {side("quantd", encode), copy}, kBytes},
                     Rounds(5, 7));
      report.Measure({absl::StrCat("decode ", name), {side("quantd", decode), copy}, kBytes},
                     Rounds(5, 7));
    }
  }
}

}  // namespace quantd::bench
