// The layouts in which other software loads quantized weights, and the parts of a weight in each
// layout. core/LAYOUTS.md defines the arithmetic; convert_weight.h performs it.
//
//   const LayoutInfo* info = FindLayout("compressed-tensors:int8");
//   absl::StatusOr<WeightPlan> plan =
//       PlanWeight({.layout = info->layout, .type = DataType::kBfloat16, .shape = {4096, 4096}});
//   for (const LayoutPart& part : WeightParts(*plan)) PartName("m.weight", part), part.bytes ...
//
// Nothing here depends on the elements. Thread-safe.
#ifndef QUANTD_LAYOUT_H_
#define QUANTD_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantd/data_type.h"
#include "quantd/shape.h"

namespace quantd {

// Every layout. G128 and G32: groups of 128 and 32 along the row; Asym: with a zero point.
enum class Layout : uint8_t {
  kFp8Tiles,  // DeepSeek's FLOAT8E4M3FN in tiles of 128 x 128
  // compressed-tensors
  kInt8,
  kInt8Tensor,
  kInt4G128,
  kInt4G32,
  kInt4G128Asym,
  kInt4G32Asym,
  kFp8,
  kFp8Tensor,
  kFp8Block,
  kNvfp4,
  kMxfp4,
  // gguf: tensor types of GGML
  kGgufF32,  // for what a .gguf keeps as FLOAT
  kGgufF16,
  kGgufBf16,
  kGgufQ8_0,
  kGgufQ4_0,
  kGgufQ4_1,
  kGgufQ5_0,
  kGgufQ5_1,
  kGgufMxfp4,
  kGgufQ2K,  // this and the following support decoding only
  kGgufQ3K,
  kGgufQ4K,
  kGgufQ5K,
  kGgufQ6K,
  // bitsandbytes
  kBnbNf4,
  kBnbNf4Double,
  kBnbFp4,
  kBnbFp4Double,
  kBnbInt8,
};

enum class LayoutFamily : uint8_t { kFp8Tiles, kCompressedTensors, kGguf, kBitsAndBytes };

// One row of the table.
struct LayoutInfo {
  Layout layout;
  absl::string_view name;  // as for `quantctl convert --to`; those of kGguf are in lower case
  LayoutFamily family;
  // The columns of a weight must be a multiple of this: the group or block. 1: any number.
  int64_t columns_of;
  bool encodes;     // whether weights can be converted to it; all can be converted from it
  int ggml_type;    // kGguf: the tensor's type in the file; else -1
  int ggml_file;    // kGguf: the value of general.file_type in such a file; -1: none
  int block_bytes;  // kGguf: bytes of `columns_of` elements; else 0
  absl::string_view ggml_name;  // kGguf: GGML's name of the type, such as "Q8_0"; else empty
};

// All layouts, in the order of the enumerators.
absl::Span<const LayoutInfo> AllLayouts();
const LayoutInfo& Info(Layout layout);
// The layout with this name, or this GGML type; or nullptr.
const LayoutInfo* FindLayout(absl::string_view name);
const LayoutInfo* FindGgmlType(int ggml_type);

// One of the tensors of a converted weight.
struct LayoutPart {
  // The suffix of the tensor's name after the weight's name: "" (the weight itself), "_scale",
  // ".absmax". PartName handles the one exception.
  absl::string_view suffix;
  // As in safetensors: "I8", "U8", "I32", "I64", "F8_E4M3", "F16", "BF16", "F32". kGguf: GGML's
  // name, such as "Q8_0".
  absl::string_view dtype;
  Shape shape;         // kGguf: the weight's
  uint64_t bytes = 0;  // of the tensor
};

// The name of a part of the weight `weight`, such as "m.weight_scale". bitsandbytes' "SCB" is
// beside the weight: "m.SCB" for "m.weight" (for other names: "w.SCB" for "w").
std::string PartName(absl::string_view weight, const LayoutPart& part);

// A weight and a layout.
struct WeightRequest {
  Layout layout = Layout::kFp8Tiles;
  // The type of the weight: FLOAT, FLOAT16 or BFLOAT16. For decoding it is the type of the scale
  // (compressed-tensors' integers and FLOAT8), the type named in the quant_state text
  // (bitsandbytes' 4 bits), or any of the three for the others.
  DataType type = DataType::kUnspecified;
  Shape shape;  // of the weight, outermost dimension first
};

// A valid request. Immutable.
struct WeightPlan {
  Layout layout = Layout::kFp8Tiles;
  DataType type = DataType::kUnspecified;
  Shape shape;
  int64_t elements = 0;
  int64_t rows = 0;     // product of all dimensions but the last
  int64_t columns = 0;  // the last dimension
  uint64_t weight_bytes = 0;
};

// INVALID_ARGUMENT with a field: "type" (another type), or "shape" (not two dimensions, which all
// layouts but gguf and bitsandbytes' 4 bits require; an empty one; columns that are not a multiple
// of columns_of; more bytes than 2^62). The text gives the reason with both numbers.
absl::StatusOr<WeightPlan> PlanWeight(const WeightRequest& request);

// What must be known of a whole tensor before any part of it can be encoded; see MeasureWeight
// (convert_weight.h).
struct WeightFacts {
  // max |x|: int8-tensor, fp8-tensor, nvfp4. nvfp4 weights that are used together (q, k and v) need
  // the largest of all of them.
  float largest = 0;
  // bitsandbytes' -double: nested_offset, the mean of absmax.
  float offset = 0;
};

// Whether encoding needs facts, and whether weights that are used together share them (nvfp4).
bool NeedsFacts(Layout layout);
bool SharesFacts(Layout layout);

// The tensors of the encoded weight, always in the same order. `facts` matters only for the text
// of bitsandbytes' -double, whose length depends on `offset`.
std::vector<LayoutPart> WeightParts(const WeightPlan& plan, const WeightFacts& facts = {});

}  // namespace quantd

#endif  // QUANTD_LAYOUT_H_
