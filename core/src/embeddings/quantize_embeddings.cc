// Converts rows to codes.
#include "quantd/quantize_embeddings.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "embeddings/vectors.h"
#include "kernels/kernel_table.h"
#include "pool/first.h"
#include "pool/tasks.h"
#include "pool/watch.h"
#include "rules/embeddings.h"
#include "rules/scale_rules.h"
#include "types/codes.h"

namespace quantd {
namespace {

Embedder EmbedderOf(const QuantizeEmbeddingsPlan& plan) {
  switch (plan.recipe) {
    case EmbeddingRecipe::kUnit:
      return Embedder::kUnit;
    case EmbeddingRecipe::kDirection:
      return Embedder::kDirection;
    case EmbeddingRecipe::kBits:
      return Embedder::kBits;
    default:
      return plan.factors.empty() ? Embedder::kRangesDivided : Embedder::kRanges;
  }
}

// RANGES and BITS make UINT8, which this turns into INT8 if necessary.
uint8_t FlipOf(const QuantizeEmbeddingsPlan& plan) {
  const bool unsigned_codes =
      plan.recipe == EmbeddingRecipe::kRanges || plan.recipe == EmbeddingRecipe::kBits;
  const bool turn = unsigned_codes && plan.output_type == DataType::kInt8 && !plan.twos_complement;
  return turn ? rules::kSignFlip : 0;
}

const float* At(const FloatColumn& column, int64_t dimension) {
  return column.empty() ? nullptr : column.data() + dimension;
}

// Adds values of a row to the error report; `begin` is the dimension of the first one.
void AddErrors(const QuantizeEmbeddingsPlan& plan, int64_t begin, const uint8_t* values,
               const uint8_t* codes, size_t size, double length, uint8_t flip, ErrorSums& sums) {
  for (size_t i = 0; i < size; ++i) {
    float x;
    std::memcpy(&x, values + i * sizeof(x), sizeof(x));
    double back = 0;
    switch (plan.recipe) {
      case EmbeddingRecipe::kUnit:
        sums.saturated_elements += rules::UnitCode(x).saturated;
        back = rules::DequantizeUnit(codes[i]);
        break;
      case EmbeddingRecipe::kDirection:
        back = rules::DequantizeDirection(codes[i], length);
        break;
      default: {
        const float low = plan.lows[static_cast<size_t>(begin) + i];
        const float step = plan.steps[static_cast<size_t>(begin) + i];
        sums.saturated_elements += rules::RangeCode(x, low, step).saturated;
        back = rules::DequantizeRange(codes[i], flip, low, step);
      }
    }
    if (!std::isfinite(x)) {
      ++sums.non_finite_elements;
      continue;
    }
    ++sums.finite_elements;
    const double error = static_cast<double>(x) - back;
    sums.signal += static_cast<double>(x) * static_cast<double>(x);
    sums.noise += error * error;
    sums.max_absolute_error = std::max(sums.max_absolute_error, std::fabs(error));
  }
}

// Shared by all tasks.
struct Job {
  const QuantizeEmbeddingsPlan& plan;
  absl::Span<const uint8_t> x;
  uint8_t* y;
  const KernelTable& kernels;
  EmbedKernel embed;
  EmbedTile tile;  // what all tiles have in common
  bool rejects;

  // Rows of FLOAT whose length is not needed.
  bool InPlace() const {
    return plan.input_type == DataType::kFloat && !plan.normalize &&
           plan.recipe != EmbeddingRecipe::kDirection && !plan.report_error;
  }
};

// The first non-finite value of a row, among all its values, including unused ones.
int64_t FindInRow(const Job& job, Vectors& vectors) {
  for (int64_t begin = 0; begin < job.plan.width; begin += Vectors::kPiece) {
    const auto size = static_cast<size_t>(std::min(job.plan.width - begin, Vectors::kPiece));
    const size_t found = job.kernels.find_non_finite(vectors.Given(begin, size), size);
    if (found < size) return begin + static_cast<int64_t>(found);
  }
  return job.plan.width;
}

// Whether the unused values are all finite. `row`: a vector of FLOAT.
bool CutOffIsFinite(const Job& job, Vectors& vectors, int64_t row) {
  const auto& plan = job.plan;
  // Pieces begin at multiples of their size; the used values in the first piece are finite, too.
  const int64_t first = plan.dimensions / Vectors::kPiece * Vectors::kPiece;
  if (plan.dimensions == plan.width) return true;
  vectors.Seek(row, /*lengths=*/false);
  for (int64_t begin = first; begin < plan.width; begin += Vectors::kPiece) {
    const auto size = static_cast<size_t>(std::min(plan.width - begin, Vectors::kPiece));
    if (job.kernels.find_non_finite(vectors.Given(begin, size), size) < size) return false;
  }
  return true;
}

// The rows of one task, one after the other.
void EmbedRows(const Job& job, int64_t begin, int64_t end, Watch& watch, First& first,
               ErrorSums* sums) {
  const auto& plan = job.plan;
  const bool lengths = plan.normalize || plan.recipe == EmbeddingRecipe::kDirection;
  Vectors vectors(plan, job.x);
  TaskWatch task_watch(watch);
  for (int64_t row = begin; row < end; ++row) {
    if (row * plan.width > first.index()) return;
    if (task_watch.StoppedBefore(plan.width * 4)) return;
    vectors.Seek(row, lengths);
    const double length = vectors.length();
    bool non_finite = false;
    for (int64_t at = 0; at < plan.dimensions; at += Vectors::kPiece) {
      EmbedTile tile = job.tile;
      tile.size = static_cast<size_t>(std::min(plan.dimensions - at, Vectors::kPiece));
      tile.x = vectors.Used(at, tile.size);
      tile.y = job.y + row * plan.row_bytes + (plan.recipe == EmbeddingRecipe::kBits ? at / 8 : at);
      tile.low = At(plan.lows, at);
      tile.step = At(plan.steps, at);
      tile.factor = At(plan.factors, at);
      tile.length = &length;
      non_finite |= job.embed(tile);
      if (sums != nullptr) {
        AddErrors(plan, at, tile.x, tile.y, tile.size, length, tile.flip, *sums);
      }
      if (plan.width > Vectors::kPiece && task_watch.StoppedBefore(Vectors::kPiece * 4)) return;
    }
    if (!job.rejects) continue;
    if (non_finite || !CutOffIsFinite(job, vectors, row)) {
      vectors.Seek(row, /*lengths=*/false);
      first.Found(row * plan.width + FindInRow(job, vectors));
      return;
    }
  }
}

// The same for many rows at a time.
void EmbedInPlace(const Job& job, int64_t begin, int64_t end, Watch& watch, First& first) {
  const auto& plan = job.plan;
  // Longer rows are processed in pieces, so that the watch is checked often enough.
  const int64_t most = std::max<int64_t>(TaskWatch::kPeriod / 4 / plan.width, 1);
  TaskWatch task_watch(watch);
  for (int64_t row = begin; row < end; row += most) {
    if (row * plan.width > first.index()) return;
    const int64_t rows = std::min(most, end - row);
    if (task_watch.StoppedBefore(rows * plan.width * 4)) return;
    EmbedTile tile = job.tile;
    tile.rows = static_cast<size_t>(rows);
    tile.size = static_cast<size_t>(plan.dimensions);
    tile.x = job.x.data() + row * plan.width * 4;
    tile.y = job.y + row * plan.row_bytes;
    tile.low = At(plan.lows, 0);
    tile.step = At(plan.steps, 0);
    tile.factor = At(plan.factors, 0);
    const bool non_finite = job.embed(tile);
    if (!job.rejects) continue;
    const auto size = static_cast<size_t>(rows * plan.width);
    if (!non_finite && plan.dimensions == plan.width) continue;
    // Finds non-finite values in these rows, also unused ones.
    const size_t found = job.kernels.find_non_finite(tile.x, size);
    if (found == size) continue;
    first.Found(row * plan.width + static_cast<int64_t>(found));
    return;
  }
}

// In longer rows the watch must be checked.
constexpr int64_t kLongRow = TaskWatch::kPeriod;

// Tasks of an error report for any number of threads, because they determine the order of its sums.
constexpr int kThreadsOfReports = 64;

float ValueAt(const QuantizeEmbeddingsPlan& plan, absl::Span<const uint8_t> x, int64_t index) {
  return DecodeFloat(plan.input_type, LoadCode(plan.input_type, x.data(), index));
}

}  // namespace

absl::Status QuantizeEmbeddings(const QuantizeEmbeddingsPlan& plan, absl::Span<const uint8_t> x,
                                const Executor& executor, Interrupted interrupted,
                                absl::Span<uint8_t> y, QuantizationError* error) {
  const KernelTable& kernels = Kernels();
  Job job{.plan = plan,
          .x = x,
          .y = y.data(),
          .kernels = kernels,
          .embed = kernels.embed[static_cast<size_t>(EmbedderOf(plan))],
          .tile = {},
          .rejects = plan.non_finite == NonFinite::kReject};
  job.tile.stride = static_cast<size_t>(plan.width);
  job.tile.y_stride = static_cast<size_t>(plan.row_bytes);
  job.tile.flip = FlipOf(plan);
  job.tile.lsb_first = plan.lsb_first;
  job.tile.greater_or_equal = plan.greater_or_equal;

  const bool report = plan.report_error && error != nullptr;
  const bool in_place = job.InPlace() && plan.width <= kLongRow;
  Watch watch(interrupted);
  First first(plan.elements);
  const TaskSplit split(plan.rows, plan.input_bytes,
                        report ? kThreadsOfReports : executor.threads(), 1);
  std::vector<ErrorSums> sums(report ? split.tasks() : 0);
  ForEachTask(&executor, split.tasks(), [&](size_t task) {
    if (in_place) {
      EmbedInPlace(job, split.begin(task), split.end(task), watch, first);
    } else {
      EmbedRows(job, split.begin(task), split.end(task), watch, first,
                report ? &sums[task] : nullptr);
    }
  });
  if (absl::Status status = watch.Status(); !status.ok()) return status;
  if (first.index() < plan.elements) {
    return rules::NonFiniteError("QuantizeEmbeddings", first.index(),
                                 ValueAt(plan, x, first.index()));
  }
  if (report) {
    ErrorSums all;
    for (const ErrorSums& some : sums) all.Add(some);
    *error = all.Finish();
  }
  return absl::OkStatus();
}

}  // namespace quantd
