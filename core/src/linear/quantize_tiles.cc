#include "linear/quantize_tiles.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "kernels/find_kernel.h"
#include "linear/beyond_caches.h"
#include "linear/reciprocals.h"
#include "linear/windows.h"
#include "pool/tasks.h"
#include "pool/watch.h"
#include "walk/scale_cursor.h"

namespace quantd {
namespace {

enum Column : size_t {
  kScale,
  kReciprocal,
  kCorrection,
  kZeroPoint,
  kDequantizeScale,
};
using Scales = ScaleCursor<float, float, float, float, float>;

// Shared by all tasks of one operation.
struct Loop {
  const uint8_t* x;
  uint8_t* y;
  int64_t origin;  // the element that y starts with
  BlockWalk walk;
  Scales::Columns columns;
  QuantizeTile tile;  // the common part of all tiles
  ErrorTile error_tile;
  bool int32;  // whether x is INT32
  QuantizeKernel quantize;
  ConvertTile to_float;
  ConvertTile pack;
  int input_bits;
  int output_bits;
};

void QuantizeRange(const Loop& loop, int64_t begin, int64_t end, Watch& watch, ErrorSums* sums) {
  alignas(64) std::array<uint8_t, kTile * 4> floats;
  alignas(64) std::array<uint8_t, kCodeWindow> code_tile;

  Scales scales(loop.walk, loop.columns);
  scales.Seek(begin, end);
  const int64_t most = scales.Most(loop.to_float != nullptr || sums != nullptr ? kTile
                                   : loop.pack != nullptr                      ? kCodeWindow
                                   : loop.tile.stream                          ? kStreamWindow
                                                                               : kLongWindow);
  TaskWatch task_watch(watch);
  QuantizeTile tile = loop.tile;
  for (int64_t at = begin, elements = 0; at < end; at += elements) {
    elements = std::min(end - at, most);
    const auto size = static_cast<size_t>(elements);
    if (task_watch.StoppedBefore(elements * 4)) return;
    const uint8_t* const given = loop.x + at * loop.input_bits / 8;
    const uint8_t* x = given;
    if (loop.to_float != nullptr) {
      loop.to_float(given, size, floats.data());
      x = floats.data();
    }
    uint8_t* y = loop.y + (at - loop.origin) * loop.output_bits / 8;
    uint8_t* codes = loop.pack != nullptr ? code_tile.data() : y;
    const int64_t code_bytes = loop.output_bits == 16 ? 2 : 1;
    scales.ForEach(elements, [&](const Scales::Piece& piece) {
      tile.x = x + piece.offset * 4;
      tile.y = codes + piece.offset * code_bytes;
      tile.size = piece.size;
      tile.first = piece.first;
      tile.run = piece.run;
      tile.scale = piece.column<kScale>();
      tile.reciprocal = piece.column<kReciprocal>();
      tile.correction = piece.column<kCorrection>();
      tile.zero_point = piece.column<kZeroPoint>();
      loop.quantize(tile);
      if (sums == nullptr) return;
      ErrorTile error = loop.error_tile;
      error.x = tile.x;
      if (loop.int32) error.int32 = given + piece.offset * 4;
      error.codes = tile.y;
      error.size = tile.size;
      error.first = tile.first;
      error.run = tile.run;
      error.scale = tile.scale;
      error.dequantize_scale = piece.column<kDequantizeScale>();
      error.zero_point = tile.zero_point;
      AddErrors(error, *sums);
    });
    if (loop.pack != nullptr) loop.pack(codes, size, y);
  }
}

// Tasks of 128 KiB, up to 32 MiB.
constexpr int kThreadsOfReports = 64;

}  // namespace

absl::Status QuantizeTiles(const QuantizeWork& work, absl::Span<const uint8_t> x, Workers workers,
                           Interrupted interrupted, absl::Span<uint8_t> y, ErrorSums* sums) {
  const Part& part = work.part;
  if (part.elements() == 0) return absl::OkStatus();
  const KernelTable& kernels = Kernels();
  const bool report = sums != nullptr;
  const BlockWalk walk(*work.layout, static_cast<int64_t>(part.first_scale));
  const ScaleMode mode = ScaleModeOf(walk);

  std::optional<Reciprocals> reciprocals;
  Scales::Columns columns{};
  if (DivisionOf(work.quotient, work.order) == Division::kReciprocal &&
      mode == ScaleMode::kPerElement) {
    reciprocals.emplace(kernels, workers, work.scale, part.scales);
    std::get<kReciprocal>(columns) = reciprocals->reciprocal();
    std::get<kCorrection>(columns) = reciprocals->correction();
  }
  std::get<kScale>(columns) = work.scale;
  if (report) std::get<kDequantizeScale>(columns) = work.dequantize_scale;
  std::get<kZeroPoint>(columns) = work.zero_point;

  const int input_bits = Info(work.input_type).bits;
  const int output_bits = Info(work.output_type).bits;
  Loop loop{
      .x = x.data(),
      .y = y.data(),
      .origin = work.origin,
      .walk = walk,
      .columns = columns,
      .tile = {},
      .error_tile = {},
      .int32 = work.input_type == DataType::kInt32,
      .quantize = FindQuantize(kernels, work.quotient, work.order, work.output_type, mode),
      .to_float = ToFloat(kernels, work.input_type),
      .pack = Pack(kernels, output_bits),
      .input_bits = input_bits,
      .output_bits = output_bits,
  };
  loop.tile.minimum = work.minimum;
  loop.tile.maximum = work.maximum;
  loop.tile.saturate = work.saturate;
  loop.tile.stream = !report && loop.pack == nullptr && BeyondCaches(work.input_bytes + y.size());
  loop.error_tile.mode = mode;
  loop.error_tile.division = DivisionOf(work.quotient, work.order);
  loop.error_tile.encoder = EncoderOf(work.output_type);
  loop.error_tile.decoder = DecoderOf(work.output_type);
  loop.error_tile.minimum = work.minimum;
  loop.error_tile.maximum = work.maximum;

  Watch watch(interrupted);
  // The sums of an error report depend on where the tasks begin, so that the same tensor has the
  // same report for any number of threads.
  const bool backwards = work.backwards && !report;
  const int threads = report ? kThreadsOfReports : ThreadsOf(workers);
  const TaskSplit split(part.elements(), work.input_bytes,
                        backwards ? std::max(threads, 2) : threads, kGroup);
  // A pool gives each thread neighbouring tasks.
  const size_t share = (split.tasks() - 1) / static_cast<size_t>(threads) + 1;
  if (split.tasks() == 1) {
    QuantizeRange(loop, part.begin, part.end, watch, sums);
  } else {
    std::vector<ErrorSums> parts(report ? split.tasks() : 0);
    ForEachTask(workers, split.tasks(), [&](size_t task) {
      if (backwards) {
        const size_t first = task / share * share;
        task = first + std::min(first + share, split.tasks()) - 1 - task;
      }
      QuantizeRange(loop, part.begin + split.begin(task), part.begin + split.end(task), watch,
                    report ? &parts[task] : nullptr);
    });
    for (const ErrorSums& one : parts) sums->Add(one);
  }
  return watch.Status();
}

}  // namespace quantd
