// What quantctl must know about the elements of a piece before the server sees them: the range of
// each block, what is not finite, and the signal's energy.
#ifndef QUANTD_CLI_SCAN_H_
#define QUANTD_CLI_SCAN_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grid.h"
#include "quantd/data_type.h"

namespace quantd::cli {

// The finite elements of a block, and zero: a range of DynamicQuantize always holds zero.
struct Range {
  float minimum = 0;
  float maximum = 0;
  void Add(const Range& other);
};

struct Scan {
  double signal = 0;  // sum of squares of the finite elements
  uint64_t finite = 0;
  uint64_t non_finite = 0;
  int64_t first_non_finite = -1;  // index in the piece, row-major
  std::vector<Range> ranges;      // of the blocks that the piece touches, row-major
};

// The values of packed elements of any type of the service; of 32-bit integers the nearest FLOAT.
std::vector<float> ToFloats(DataType type, int64_t elements, absl::string_view bytes);

// `values`: the elements of `box`, row-major.
Scan ScanPiece(absl::Span<const float> values, const Box& box, const BlockGrid& grid);

// Elements of a piece that lie in neighbouring blocks: `run` in the first one, which is `block`, as
// many in the next, and so on; the last may have fewer. Elements and blocks of the piece are
// counted row-major.
struct BlockRow {
  int64_t first = 0, count = 0;  // elements
  int64_t run = 0;               // elements a block
  int64_t block = 0;
};

// Visits all elements of `box`, in order.
void ForEachBlockRow(const Box& box, const BlockGrid& grid,
                     absl::FunctionRef<void(const BlockRow& row)> visit);

// The same a block at a time: visit(first, count, block).
void ForEachBlockRun(const Box& box, const BlockGrid& grid,
                     absl::FunctionRef<void(int64_t first, int64_t count, int64_t block)> visit);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_SCAN_H_
