#include "calibrate/count.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "calibrate/tally.h"
#include "kernels/find_kernel.h"
#include "pool/first.h"
#include "pool/watch.h"
#include "quantd/field_error.h"

namespace quantd::calibrate {
namespace {

constexpr int64_t kTile = 1024;
// Elements of the last axis that are processed together, in rows until a batch is full: their
// counts stay in the second-level cache, and the batch in the first.
constexpr int64_t kColumns = 256;
constexpr int64_t kBatch = 8192;
constexpr int64_t kMostLines = 256;

// The memory for channels that tasks have for themselves.
constexpr uint64_t kOwnBytes = 4 << 20;

// With this many elements a task uses a tally.
constexpr int64_t kMany = 1 << 17;

// Reads contiguous elements of a tensor as floats.
class FloatReader {
 public:
  explicit FloatReader(const TensorView& x)
      : bytes_(x.bytes),
        to_float_(ToFloat(Kernels(), x.data_type)),
        width_(static_cast<size_t>(Info(x.data_type).bits) / 8) {}

  // Returns `size` floats: in place if possible, otherwise converted into `buffer`, which has 4
  // bytes per element.
  const uint8_t* Read(int64_t begin, int64_t size, uint8_t* buffer) const {
    const uint8_t* const from = bytes_.data() + static_cast<size_t>(begin) * width_;
    if (to_float_ == nullptr) return from;
    to_float_(from, static_cast<size_t>(size), buffer);
    return buffer;
  }

 private:
  const absl::Span<const uint8_t> bytes_;
  const ConvertTile to_float_;
  const size_t width_;
};

// Shared by all tasks.
struct Job {
  const KernelTable& kernels;
  FloatReader reader;
  Extents extents;
  bool rejects;
  Watch watch;
  First first_non_finite;  // an index in x
};

// Adds values of one channel. `tally`: where they are counted before the bins are known, or null.
void AddRun(const Job& job, const uint8_t* x, int64_t elements, size_t channel, size_t non_finite,
            Channels& to, Tally* tally) {
  to.non_finite[channel] += non_finite;
  to.finite[channel] += static_cast<uint64_t>(elements) - non_finite;
  const auto size = static_cast<size_t>(elements);
  if (tally != nullptr) return tally->Add(x, size, x + size * sizeof(float));
  if (!to.has_bins()) return;
  Bins& bins = to.RaiseTop(channel);
  std::array<uint16_t, kTile> slots;
  job.kernels.find_slots(x, size, static_cast<uint16_t>(bins.floor()), slots.data());
  bins.Count(slots.data(), size, x + size * sizeof(float));
}

// The elements from begin to end, run by run of one channel.
void CountRuns(Job& job, int64_t begin, int64_t end, Channels& to, Tally* tally = nullptr) {
  alignas(64) std::array<uint8_t, kTile * 4> buffer;
  TaskWatch watch(job.watch);
  const int64_t inner = to.size() == 1 ? job.extents.elements() : job.extents.inner;
  auto channel = static_cast<size_t>(begin / inner % job.extents.channels);
  int64_t left = inner - begin % inner;  // of the run
  for (int64_t at = begin; at < end;) {
    const int64_t size = std::min({left, end - at, kTile});
    if (watch.StoppedBefore(size * 4) || at > job.first_non_finite.index()) return;
    const uint8_t* const x = job.reader.Read(at, size, buffer.data());
    const size_t non_finite = job.kernels.find_extremes(x, static_cast<size_t>(size),
                                                        &to.low[channel], &to.high[channel]);
    if (non_finite > 0 && job.rejects) {
      const size_t found = job.kernels.find_non_finite(x, static_cast<size_t>(size));
      job.first_non_finite.Found(at + static_cast<int64_t>(found));
      return;
    }
    AddRun(job, x, size, channel, non_finite, to, tally);
    at += size;
    left -= size;
    if (left > 0) continue;
    left = inner;
    channel = channel + 1 == to.size() ? 0 : channel + 1;
  }
}

// The same for one channel with many elements. If it ends early, nobody uses its counts.
void CountMany(Job& job, int64_t begin, int64_t end, Channels& to) {
  while (begin < end) {
    const int64_t stop = std::min(end, begin + Tally::kMost);
    Tally tally;
    if (!tally) return CountRuns(job, begin, end, to);
    const uint64_t finite = to.finite[0];
    CountRuns(job, begin, stop, to, &tally);
    tally.AddTo(to.finite[0] - finite, to.RaiseTop(0));
    begin = stop;
  }
}

// Rows of channels (inner == 1), some columns of them: `lines` of contiguous elements. Each line
// has whole rows as long as they are short, and lane i of every line has the same channel.
class Lines {
 public:
  Lines(Job& job, int64_t first_column, int64_t columns, Channels& to)
      : job_(job), to_(to), first_(first_column), columns_(columns) {
    // Whole rows are contiguous; parts of rows are not.
    repeat_ = columns == job.extents.channels ? std::max<int64_t>(1, kTile / columns) : 1;
    lanes_ = columns_ * repeat_;
    low_.resize(static_cast<size_t>(lanes_));
    high_.resize(low_.size());
    floors_.resize(low_.size());
    bins_.resize(low_.size());
    slots_.resize(low_.size());
    buffer_.resize(static_cast<size_t>(std::max(kBatch, lanes_)) * 4);
    most_lines_ = std::clamp<int64_t>(kBatch / lanes_, 1, kMostLines);
    lines_.reserve(static_cast<size_t>(most_lines_));
  }

  void Count(int64_t first_row, int64_t end_row) {
    TaskWatch watch(job_.watch);
    const int64_t batch = most_lines_ * repeat_;
    for (int64_t row = first_row; row < end_row; row += batch) {
      const int64_t rows = std::min(batch, end_row - row);
      const bool beyond = Element(row) > job_.first_non_finite.index();
      if (watch.StoppedBefore(rows * columns_ * 4) || beyond) return;
      if (!CountBatch(row, rows)) return;
    }
  }

 private:
  struct Line {
    const uint8_t* x;
    size_t size;
    int64_t element;
  };

  int64_t Element(int64_t row) const { return row * job_.extents.channels + first_; }
  size_t Channel(size_t lane) const {
    return static_cast<size_t>(first_) + lane % static_cast<size_t>(columns_);
  }

  bool CountBatch(int64_t row, int64_t rows) {
    lines_.clear();
    for (int64_t at = row; at < row + rows; at += repeat_) {
      const int64_t size = std::min(repeat_, row + rows - at) * columns_;
      uint8_t* const buffer = buffer_.data() + static_cast<size_t>((at - row) * columns_) * 4;
      lines_.push_back(
          {job_.reader.Read(Element(at), size, buffer), static_cast<size_t>(size), Element(at)});
    }
    std::fill(low_.begin(), low_.end(), INFINITY);
    std::fill(high_.begin(), high_.end(), -INFINITY);
    for (const Line& line : lines_) {
      if (!job_.kernels.find_extremes_each(line.x, line.size, low_.data(), high_.data())) continue;
      if (job_.rejects) {
        const size_t found = job_.kernels.find_non_finite(line.x, line.size);
        job_.first_non_finite.Found(line.element + static_cast<int64_t>(found));
        return false;
      }
      MoveNonFinite(line);
    }
    for (size_t lane = 0; lane < low_.size(); ++lane) {
      const size_t channel = Channel(lane);
      to_.low[channel] = std::min(to_.low[channel], low_[lane]);
      to_.high[channel] = std::max(to_.high[channel], high_[lane]);
    }
    for (size_t i = 0; i < static_cast<size_t>(columns_); ++i) {
      to_.finite[Channel(i)] += static_cast<uint64_t>(rows);
    }
    if (to_.has_bins()) CountBins();
    return true;
  }

  // Moves non-finite elements out of the count of values, where CountBatch counts all.
  void MoveNonFinite(const Line& line) {
    for (size_t i = 0; i < line.size; ++i) {
      uint32_t bits;
      std::memcpy(&bits, line.x + i * sizeof(bits), sizeof(bits));
      if ((bits & 0x7F800000u) != 0x7F800000u) continue;
      --to_.finite[Channel(i)];
      ++to_.non_finite[Channel(i)];
    }
  }

  void CountBins() {
    for (size_t lane = 0; lane < low_.size(); ++lane) {
      bins_[lane] = &to_.RaiseTop(Channel(lane));
      floors_[lane] = static_cast<uint16_t>(bins_[lane]->floor());
    }
    for (const Line& line : lines_) {
      job_.kernels.find_slots_each(line.x, line.size, floors_.data(), slots_.data());
      for (size_t i = 0; i < line.size; ++i) bins_[i]->CountOne(slots_[i]);
    }
  }

  Job& job_;
  Channels& to_;
  const int64_t first_;
  const int64_t columns_;
  int64_t repeat_ = 1;  // rows in a line
  int64_t lanes_ = 0;
  int64_t most_lines_ = 1;  // lines in a batch
  std::vector<float> low_, high_;
  std::vector<uint16_t> floors_, slots_;
  std::vector<Bins*> bins_;
  std::vector<Line> lines_;
  std::vector<uint8_t> buffer_;
};

void CountColumns(Job& job, int64_t begin, int64_t end, Channels& to) {
  for (int64_t at = begin; at < end; at += kColumns) {
    Lines(job, at, std::min(kColumns, end - at), to).Count(0, job.extents.outer);
  }
}

// Whether tasks have a few columns or a few rows each: only if the axis is the last one.
bool HasLines(const Extents& extents) { return extents.inner == 1 && extents.channels > 1; }

// Every task counts some of the elements, or whole rows, in channels of its own.
void CountApart(Job& job, Workers workers, size_t tasks, Channels& channels) {
  const Extents& extents = job.extents;
  const bool lines = HasLines(extents);
  const TaskSplit split(lines ? extents.outer : extents.elements(), UINT64_MAX, ThreadsOf(workers),
                        lines ? 1 : kTile, tasks);
  const auto parts = static_cast<int64_t>(split.tasks());
  const bool tallies = channels.size() == 1 && channels.has_bins() &&
                       extents.elements() / parts >= kMany &&
                       split.tasks() * (Tally::kBytes + Channels::Bytes(1, true)) <= kOwnBytes;
  std::vector<Channels> own(split.tasks());
  ForEachTask(workers, split.tasks(), [&](size_t task) {
    own[task] = Channels(channels.size(), channels.has_bins());
    if (tallies) return CountMany(job, split.begin(task), split.end(task), own[task]);
    if (!lines) return CountRuns(job, split.begin(task), split.end(task), own[task]);
    for (int64_t at = 0; at < extents.channels; at += kColumns) {
      Lines(job, at, std::min(kColumns, extents.channels - at), own[task])
          .Count(split.begin(task), split.end(task));
    }
  });
  if (job.watch.WasStopped() || job.first_non_finite.index() < extents.elements()) return;
  for (const Channels& some : own) channels.Merge(some);
}

// Every task has some of the channels for itself.
void CountTogether(Job& job, Workers workers, size_t tasks, Channels& channels) {
  const Extents& extents = job.extents;
  const TaskSplit split(extents.channels, UINT64_MAX, ThreadsOf(workers), 1, tasks);
  ForEachTask(workers, split.tasks(), [&](size_t task) {
    if (HasLines(extents)) return CountColumns(job, split.begin(task), split.end(task), channels);
    for (int64_t outer = 0; outer < extents.outer; ++outer) {
      const int64_t begin = outer * extents.channels * extents.inner;
      CountRuns(job, begin + split.begin(task) * extents.inner,
                begin + split.end(task) * extents.inner, channels);
    }
  });
}

// Checked first, so that nothing has changed if a value is rejected.
void LookForNonFinite(Job& job, Workers workers, uint64_t bytes) {
  const TaskSplit split(job.extents.elements(), bytes, ThreadsOf(workers), kTile);
  ForEachTask(workers, split.tasks(), [&](size_t task) {
    alignas(64) std::array<uint8_t, kTile * 4> buffer;
    TaskWatch watch(job.watch);
    for (int64_t at = split.begin(task); at < split.end(task); at += kTile) {
      const int64_t size = std::min(kTile, split.end(task) - at);
      if (watch.StoppedBefore(size * 4) || at > job.first_non_finite.index()) return;
      const uint8_t* const x = job.reader.Read(at, size, buffer.data());
      const size_t found = job.kernels.find_non_finite(x, static_cast<size_t>(size));
      if (found == static_cast<size_t>(size)) continue;
      job.first_non_finite.Found(at + static_cast<int64_t>(found));
      return;
    }
  });
}

absl::Status Outcome(const Job& job, const TensorView& x) {
  if (absl::Status status = job.watch.Status(); !status.ok()) return status;
  const int64_t index = job.first_non_finite.index();
  if (index == job.extents.elements()) return absl::OkStatus();
  std::array<uint8_t, 4> buffer;
  float value;
  std::memcpy(&value, FloatReader(x).Read(index, 1, buffer.data()), sizeof(value));
  return FieldError("x", absl::StrCat("x[", index, "] is ", value,
                                      ", Calibrate takes finite values unless non_finite is "
                                      "IGNORE"));
}

}  // namespace

absl::Status Count(const TensorView& x, const Extents& extents, NonFinite non_finite,
                   Workers workers, Interrupted interrupted, Channels& channels) {
  const int64_t elements = extents.elements();
  if (elements == 0) return absl::OkStatus();
  Job job{.kernels = Kernels(),
          .reader = FloatReader(x),
          .extents = extents,
          .rejects = non_finite == NonFinite::kReject && x.data_type != DataType::kInt32,
          .watch = Watch(interrupted),
          .first_non_finite = First(elements)};
  const auto bytes = static_cast<uint64_t>(elements) * sizeof(float);
  const auto threads = static_cast<uint64_t>(ThreadsOf(workers));
  const size_t most = TaskSplit(elements, bytes, ThreadsOf(workers), kTile).tasks();
  const uint64_t each = Channels::Bytes(channels.size(), channels.has_bins());
  const uint64_t apart = std::min({static_cast<uint64_t>(most), threads, kOwnBytes / each});
  // Worthwhile if the tasks' own channels are small compared with the counted data, and necessary
  // if there are fewer channels than threads. Nothing is read twice.
  if (apart > 0 && each * apart < bytes / 4) {
    CountApart(job, workers, apart, channels);
    return Outcome(job, x);
  }
  if (job.rejects) {
    LookForNonFinite(job, workers, bytes);
    if (absl::Status status = Outcome(job, x); !status.ok()) return status;
  }
  CountTogether(job, workers, most, channels);
  return Outcome(job, x);
}

}  // namespace quantd::calibrate
