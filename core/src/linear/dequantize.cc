#include "quantd/dequantize.h"

#include <array>
#include <cstddef>

#include "kernels/find_kernel.h"
#include "linear/beyond_caches.h"
#include "linear/windows.h"
#include "pool/tasks.h"
#include "pool/watch.h"
#include "walk/cursor.h"
#include "walk/scale_cursor.h"

namespace quantd {
namespace {

enum Column : size_t { kScale, kZeroPoint };
using Scales = ScaleCursor<float, int32_t>;

// What all tasks of one operation share.
struct Loop {
  const ByteChunks& x;
  uint8_t* y;
  BlockWalk walk;
  Scales::Columns columns;
  DequantizeKernel dequantize;
  ConvertTile unpack;
  ConvertTile from_float;
  int input_bits;
  int output_bits;
  bool stream;
};

void DequantizeRange(const Loop& loop, int64_t begin, int64_t end, Watch& watch) {
  alignas(64) std::array<uint8_t, Cursor::kBufferBytes> gathered;
  alignas(64) std::array<uint8_t, Cursor::kTile * 4> floats;
  alignas(64) std::array<uint8_t, kCodeWindow> code_tile;

  Cursor cursor(loop.x, loop.input_bits);
  Scales scales(loop.walk, loop.columns);
  cursor.Seek(begin);
  scales.Seek(begin, end);
  const int64_t most = scales.Most(loop.from_float != nullptr ? Cursor::kTile
                                   : loop.unpack != nullptr   ? kCodeWindow
                                   : loop.stream              ? kStreamWindow
                                                              : kLongWindow);
  TaskWatch task_watch(watch);
  DequantizeTile tile;
  tile.stream = loop.stream;
  const int64_t code_bytes = loop.input_bits <= 8 ? 1 : loop.input_bits / 8;
  while (cursor.element() < end) {
    const Cursor::Window window = cursor.Next(end, most, gathered.data());
    const auto size = static_cast<size_t>(window.elements);
    if (task_watch.StoppedBefore(window.elements * 4)) return;
    const uint8_t* codes = window.data;
    if (loop.unpack != nullptr) {
      loop.unpack(window.data, size, code_tile.data());
      codes = code_tile.data();
    }
    uint8_t* y = loop.y + window.begin * loop.output_bits / 8;
    uint8_t* out = loop.from_float != nullptr ? floats.data() : y;
    scales.ForEach(window.elements, [&](const Scales::Piece& piece) {
      tile.x = codes + piece.offset * code_bytes;
      tile.y = out + piece.offset * 4;
      tile.size = piece.size;
      tile.first = piece.first;
      tile.run = piece.run;
      tile.scale = piece.column<kScale>();
      tile.zero_point = piece.column<kZeroPoint>();
      loop.dequantize(tile);
    });
    if (loop.from_float != nullptr) loop.from_float(floats.data(), size, y);
  }
}

}  // namespace

absl::Status Dequantize(const DequantizePlan& plan, const ByteChunks& x, const Executor& executor,
                        Interrupted interrupted, absl::Span<uint8_t> y) {
  if (plan.elements == 0) return absl::OkStatus();
  const KernelTable& kernels = Kernels();
  const BlockWalk walk(plan.layout);
  const Scales::Columns columns(plan.scales.data(),
                                plan.zero_points.empty() ? nullptr : plan.zero_points.data());
  const ConvertTile from_float = FromFloat(kernels, plan.output_type);
  const Loop loop{
      .x = x,
      .y = y.data(),
      .walk = walk,
      .columns = columns,
      .dequantize = FindDequantize(kernels, plan.input_type, ScaleModeOf(walk)),
      .unpack = Unpack(kernels, plan.input_type),
      .from_float = from_float,
      .input_bits = Info(plan.input_type).bits,
      .output_bits = Info(plan.output_type).bits,
      .stream = from_float == nullptr && BeyondCaches(plan.input_bytes + y.size()),
  };

  Watch watch(interrupted);
  const TaskSplit split(plan.elements, y.size(), executor.threads(), Cursor::kGroup);
  if (split.tasks() == 1) {
    DequantizeRange(loop, 0, plan.elements, watch);
  } else {
    executor.ParallelFor(split.tasks(), [&](size_t task) {
      DequantizeRange(loop, split.begin(task), split.end(task), watch);
    });
  }
  if (watch.WasStopped()) return absl::CancelledError("the request is no longer wanted");
  return absl::OkStatus();
}

}  // namespace quantd
