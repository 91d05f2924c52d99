// Decodes weights whose scales form a grid over rows and columns, in the forms that have no layout
// of their own in layout.h: other sizes of blocks, other types of scales, other ways to store zero
// points. The result is the same on every instruction set and for any number of threads.
#ifndef QUANTD_DECODE_GRID_H_
#define QUANTD_DECODE_GRID_H_

#include <cstdint>

#include "absl/status/status.h"
#include "quantd/convert_weight.h"
#include "quantd/data_type.h"
#include "quantd/executor.h"

namespace quantd {

// How the codes of a row are stored. Rows of packed codes begin at a whole byte or word.
enum class GridCodes : uint8_t {
  kFloat8E4M3Fn,
  kFloat8E5M2,
  kInt8,
  kFloat4E2M1,  // two to a byte, the first in the low half
  kPackedInt4,  // code + 8, eight to a word of 32 bits, the first in the lowest bits
  kPackedInt8,  // code + 128, four to such a word
};

struct Grid {
  GridCodes codes = GridCodes::kFloat8E4M3Fn;
  int64_t rows = 0, columns = 0;              // of the weight
  int64_t block_rows = 1, block_columns = 1;  // elements with the same scale; fewer at the edges
  // FLOAT, FLOAT16, BFLOAT16, FLOAT8E4M3FN or FLOAT8E8M0. One row of scales for every `block_rows`.
  DataType scale_type = DataType::kFloat;
  float factor = 1;  // multiplies each scale, in FLOAT
  // One zero point for each scale: INT8, or INT32 for codes + 8 (or + 128) that are packed into
  // words down the rows; kUnspecified: none.
  DataType zero_point_type = DataType::kUnspecified;
  // `(code - zero point) * scale`, computed in FLOAT, is rounded to this type first.
  DataType through = DataType::kFloat;
};

// Writes the weight as `output`: FLOAT, FLOAT16 or BFLOAT16. Any bytes are accepted; too large
// values become infinite. `zero_points` is not read if there are none. Returns CANCELLED, or errors
// of sources and sink. REQUIRES: positive sizes, less than 2^59 elements, and the sources have the
// bytes of the grid's codes, scales and zero points.
absl::Status DecodeGrid(const Grid& grid, const ByteSource& codes, const ByteSource& scales,
                        const ByteSource* zero_points, DataType output, ByteSink& weight,
                        const Executor& executor, Interrupted interrupted);

}  // namespace quantd

#endif  // QUANTD_DECODE_GRID_H_
