#include "quantd/dequantize.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/find_kernel.h"
#include "linear/beyond_caches.h"
#include "linear/given_scales.h"
#include "linear/windows.h"
#include "pool/tasks.h"
#include "pool/watch.h"
#include "walk/scale_cursor.h"

namespace quantd {
namespace {

enum Column : size_t { kScale, kZeroPoint };
using Scales = ScaleCursor<float, int32_t>;

// Shared by all tasks of one part.
struct Loop {
  const uint8_t* x;
  uint8_t* y;
  int64_t origin;  // the element that y starts with
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
  alignas(64) std::array<uint8_t, kTile * 4> floats;
  alignas(64) std::array<uint8_t, kCodeWindow> code_tile;

  Scales scales(loop.walk, loop.columns);
  scales.Seek(begin, end);
  const int64_t most = scales.Most(loop.from_float != nullptr ? kTile
                                   : loop.unpack != nullptr   ? kCodeWindow
                                   : loop.stream              ? kStreamWindow
                                                              : kLongWindow);
  TaskWatch task_watch(watch);
  DequantizeTile tile;
  tile.stream = loop.stream;
  const int64_t code_bytes = loop.input_bits <= 8 ? 1 : loop.input_bits / 8;
  for (int64_t at = begin, elements = 0; at < end; at += elements) {
    elements = std::min(end - at, most);
    const auto size = static_cast<size_t>(elements);
    if (task_watch.StoppedBefore(elements * 4)) return;
    const uint8_t* codes = loop.x + at * loop.input_bits / 8;
    if (loop.unpack != nullptr) {
      loop.unpack(codes, size, code_tile.data());
      codes = code_tile.data();
    }
    uint8_t* y = loop.y + (at - loop.origin) * loop.output_bits / 8;
    uint8_t* out = loop.from_float != nullptr ? floats.data() : y;
    scales.ForEach(elements, [&](const Scales::Piece& piece) {
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

absl::Status DequantizeElements(const DequantizePlan& plan, absl::Span<const uint8_t> x,
                                int64_t begin, int64_t end, const Executor& executor,
                                Interrupted interrupted, absl::Span<uint8_t> y) {
  const KernelTable& kernels = Kernels();
  const ConvertTile from_float = FromFloat(kernels, plan.output_type);
  const bool stream =
      from_float == nullptr && BeyondCaches(ByteSize(plan.input_type, end - begin) + y.size());
  Watch watch(interrupted);
  const auto run = [&](const GivenPart& given, ColumnReader& reader, Workers workers, ErrorSums*) {
    const Part& part = given.part;
    const float* scale = nullptr;
    if (plan.has_tensor_scale) {
      float* const products = reader.OwnFloats(plan.scales, given, kScale);
      for (size_t i = 0; i < part.scales; ++i) products[i] *= plan.tensor_scale;
      scale = products;
    } else {
      scale = reader.Floats(plan.scales, given, kScale);
    }
    const BlockWalk walk(*given.layout, static_cast<int64_t>(part.first_scale));
    const Loop loop{
        .x = x.data(),
        .y = y.data(),
        .origin = begin,
        .walk = walk,
        .columns = {scale, reader.Integers(plan.zero_points, given, kZeroPoint)},
        .dequantize = FindDequantize(kernels, plan.input_type, ScaleModeOf(walk)),
        .unpack = Unpack(kernels, plan.input_type),
        .from_float = from_float,
        .input_bits = Info(plan.input_type).bits,
        .output_bits = Info(plan.output_type).bits,
        .stream = stream,
    };
    const TaskSplit split(part.elements(), y.size(), ThreadsOf(workers), kGroup);
    ForEachTask(workers, split.tasks(), [&](size_t task) {
      DequantizeRange(loop, part.begin + split.begin(task), part.begin + split.end(task), watch);
    });
    return watch.Status();
  };
  return ForEachGivenPart(plan.layout, begin, end, &executor, nullptr, run);
}

absl::Status Dequantize(const DequantizePlan& plan, absl::Span<const uint8_t> x,
                        const Executor& executor, Interrupted interrupted, absl::Span<uint8_t> y) {
  return DequantizeElements(plan, x, 0, plan.elements, executor, interrupted, y);
}

}  // namespace quantd
