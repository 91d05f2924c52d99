#include "dynamic/find_ranges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/find_kernel.h"
#include "linear/beyond_caches.h"
#include "linear/windows.h"
#include "pool/first.h"
#include "pool/tasks.h"
#include "pool/watch.h"
#include "rules/scale_rules.h"
#include "walk/block_walk.h"
#include "walk/scale_cursor.h"

namespace quantd {
namespace {

// Shared by all tasks.
struct Loop {
  const uint8_t* x;
  BlockWalk walk;
  RangeKernel range;
  ConvertTile to_float;
  size_t (*find_non_finite)(const uint8_t* x, size_t size);
  int input_bits;
  bool rejects;  // elements that are not finite are errors
  bool fetch;    // as in RangeTile
};

// The destination of a task's ranges: one entry per scale.
struct Destination {
  float* min;
  float* max;
};

// Rows that are too short for a call each, all with the same scales: as many as possible form one
// wide row of kPerElement, whose entries are combined at the end.
class WideRow {
 public:
  static bool Fits(const BlockWalk& walk) { return HasShortRows(walk) && walk.period() > 0; }

  WideRow(const BlockWalk& walk, int64_t begin)
      : row_(walk.row()),
        block_(walk.block()),
        width_(kMost / walk.row() * walk.row()),
        at_(begin % walk.row()) {
    std::fill_n(min_.data(), width_, 0.0f);
    std::fill_n(max_.data(), width_, 0.0f);
  }

  template <typename Body>
  bool ForEach(int64_t elements, Body&& body) {
    for (int64_t offset = 0; offset < elements;) {
      const int64_t size = std::min(elements - offset, width_ - at_);
      RangeTile tile;
      tile.size = static_cast<size_t>(size);
      tile.min = min_.data() + at_;
      tile.max = max_.data() + at_;
      if (!body(offset, tile)) return false;
      offset += size;
      at_ = at_ + size == width_ ? 0 : at_ + size;
    }
    return true;
  }

  void AddTo(const Destination& to) const {
    for (int64_t i = 0; i < width_; ++i) {
      const int64_t scale = i % row_ / block_;
      to.min[scale] = std::min(to.min[scale], min_[i]);
      to.max[scale] = std::max(to.max[scale], max_[i]);
    }
  }

 private:
  static constexpr int64_t kMost = 1024;
  static_assert(kShortRow <= kMost);

  const int64_t row_;
  const int64_t block_;
  const int64_t width_;
  int64_t at_;
  alignas(64) std::array<float, kMost> min_;  // initialised up to width_
  alignas(64) std::array<float, kMost> max_;
};

// Rows that are written directly to the destination.
class LongRows {
 public:
  LongRows(const BlockWalk& walk, int64_t begin, const Destination& to) : walk_(walk), to_(to) {
    walk_.Seek(begin);
  }

  template <typename Body>
  bool ForEach(int64_t elements, Body&& body) {
    for (int64_t offset = 0; offset < elements;) {
      const Segment segment = walk_.Next(elements - offset);
      RangeTile tile;
      tile.size = static_cast<size_t>(segment.elements);
      tile.first = static_cast<size_t>(segment.phase);
      tile.run = static_cast<size_t>(walk_.block());
      tile.min = to_.min + segment.scale;
      tile.max = to_.max + segment.scale;
      if (!body(offset, tile)) return false;
      offset += segment.elements;
    }
    return true;
  }

 private:
  BlockWalk walk_;
  const Destination to_;
};

// `rows` is a WideRow or LongRows, positioned at `begin`.
template <typename Rows>
void RangeOfElements(const Loop& loop, int64_t begin, int64_t end, Watch& watch, First& first,
                     Rows& rows) {
  alignas(64) std::array<uint8_t, kTile * 4> floats;
  const int64_t most = loop.to_float != nullptr ? kTile : kLongWindow;
  TaskWatch task_watch(watch);
  for (int64_t at = begin, elements = 0; at < end; at += elements) {
    elements = std::min(end - at, most);
    if (task_watch.StoppedBefore(elements * 4) || at > first.index()) return;
    const uint8_t* x = loop.x + at * loop.input_bits / 8;
    if (loop.to_float != nullptr) {
      loop.to_float(x, static_cast<size_t>(elements), floats.data());
      x = floats.data();
    }
    const bool go_on = rows.ForEach(elements, [&](int64_t offset, RangeTile& tile) {
      tile.x = x + offset * 4;
      tile.fetch = loop.fetch;
      if (!loop.range(tile) || !loop.rejects) return true;
      const size_t found = loop.find_non_finite(tile.x, tile.size);
      first.Found(at + offset + static_cast<int64_t>(found));
      return false;
    });
    if (!go_on) return;
  }
}

void RangeOfTask(const Loop& loop, int64_t begin, int64_t end, Watch& watch, First& first,
                 const Destination& to) {
  if (WideRow::Fits(loop.walk)) {
    WideRow rows(loop.walk, begin);
    RangeOfElements(loop, begin, end, watch, first, rows);
    rows.AddTo(to);
  } else {
    LongRows rows(loop.walk, begin, to);
    RangeOfElements(loop, begin, end, watch, first, rows);
  }
}

// Up to this number every task has ranges of its own: 8 KiB stay in L1 with the elements.
constexpr size_t kFewScales = 1024;

constexpr uint64_t kMostCounted = 256 << 20;

float ElementAt(const Loop& loop, int64_t index) {
  const uint8_t* const element = loop.x + index * loop.input_bits / 8;
  std::array<uint8_t, 4> wide{};
  if (loop.to_float != nullptr) {
    loop.to_float(element, 1, wide.data());
  } else {
    std::copy_n(element, wide.size(), wide.data());
  }
  return std::bit_cast<float>(wide);
}

}  // namespace

uint64_t MostOwnRanges(const DynamicQuantizePlan& plan) {
  return std::min(plan.input_bytes, kMostCounted) / 4;
}

absl::Status FindRanges(const DynamicQuantizePlan& plan, const BlockLayout& layout,
                        absl::Span<const uint8_t> x, const Part& part, Workers workers,
                        Interrupted interrupted, float* min, float* max) {
  const KernelTable& kernels = Kernels();
  const BlockWalk walk(layout, static_cast<int64_t>(part.first_scale));
  const ScaleMode mode =
      walk.block() == 1 || WideRow::Fits(walk) ? ScaleMode::kPerElement : ScaleMode::kRuns;
  const Loop loop{
      .x = x.data(),
      .walk = walk,
      .range = FindRange(kernels, plan.non_finite, mode),
      .to_float = ToFloat(kernels, plan.input_type),
      .find_non_finite = kernels.find_non_finite,
      .input_bits = Info(plan.input_type).bits,
      .rejects = plan.non_finite == NonFinite::kReject,
      .fetch = BeyondCaches(plan.input_bytes),
  };

  const int64_t alone = ElementsWithoutSharedScales(layout);
  const bool own_ranges = part.scales <= kFewScales || alone >= part.elements();
  size_t most_tasks = SIZE_MAX;
  if (own_ranges) {
    most_tasks = static_cast<size_t>(ThreadsOf(workers)) * TaskSplit::kTasksPerThread;
    if (part.scales > kFewScales) {
      // They may take a quarter of the input's bytes, and at most 64 MiB.
      const uint64_t bytes = std::min(plan.input_bytes, kMostCounted);
      const uint64_t fit = bytes / 32 / part.scales;
      most_tasks = std::clamp<uint64_t>(fit, 1, most_tasks);
    }
  }
  const TaskSplit split(part.elements(), plan.input_bytes, ThreadsOf(workers),
                        own_ranges ? kGroup : alone, most_tasks);

  Watch watch(interrupted);
  First first(plan.elements);
  if (split.tasks() == 1) {
    RangeOfTask(loop, part.begin, part.end, watch, first, {min, max});
  } else if (own_ranges) {
    const size_t count = part.scales;
    std::vector<float> own(2 * count * split.tasks(), 0.0f);
    ForEachTask(workers, split.tasks(), [&](size_t task) {
      float* task_min = own.data() + 2 * count * task;
      RangeOfTask(loop, part.begin + split.begin(task), part.begin + split.end(task), watch, first,
                  {task_min, task_min + count});
    });
    for (size_t task = 0; task < split.tasks(); ++task) {
      const float* task_min = own.data() + 2 * count * task;
      for (size_t i = 0; i < count; ++i) {
        min[i] = std::min(min[i], task_min[i]);
        max[i] = std::max(max[i], task_min[count + i]);
      }
    }
  } else {
    ForEachTask(workers, split.tasks(), [&](size_t task) {
      RangeOfTask(loop, part.begin + split.begin(task), part.begin + split.end(task), watch, first,
                  {min, max});
    });
  }
  if (absl::Status status = watch.Status(); !status.ok()) return status;
  if (first.index() < plan.elements) {
    return rules::NonFiniteError("DynamicQuantize", first.index(), ElementAt(loop, first.index()));
  }
  return absl::OkStatus();
}

}  // namespace quantd
