// .gguf, versions 2 and 3, little endian:
//
//   "GGUF" version:u32 tensors:u64 keys:u64
//   keys:     name:string type:u32 value             string: length:u64 bytes
//   tensors:  name:string n:u32 dimension:u64[n] (the innermost first) type:u32 offset:u64
//   zeros up to a multiple of the alignment (general.alignment, else 32); offsets count from here
//   the tensors' bytes, each at a multiple of the alignment
#ifndef QUANTD_CHECKPOINTS_GGUF_H_
#define QUANTD_CHECKPOINTS_GGUF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoints/files.h"
#include "checkpoints/tensor.h"

namespace quantd::checkpoints {

inline constexpr uint32_t kGgufUint32 = 4, kGgufString = 8;
inline constexpr uint64_t kGgufAlignment = 32;

// A key and the position of its value in the file: values are never loaded into memory.
struct GgufKey {
  std::string name;
  uint64_t offset = 0, bytes = 0;
};

struct GgufHeader {
  uint64_t alignment = kGgufAlignment;
  uint64_t split_parts = 0;     // split.count: of how many files this is one; 0: it says nothing
  std::vector<GgufKey> keys;    // in the file's order
  std::vector<Tensor> tensors;  // in the file's order; dimensions reversed
};

struct GgmlType {
  int number;
  absl::string_view name;
  int elements;  // in a block; rows are whole blocks
  int bytes;     // of a block
};

// Returns nullptr if there is no such type.
const GgmlType* FindGgml(int64_t number);
// The type for a tensor that is stored unchanged, from safetensors' dtype such as "I64"; nullptr
// for BOOL and others for which GGML has no type.
const GgmlType* FindGgml(absl::string_view dtype);

// Whether a type contains plain numbers: floats or integers, not blocks of codes.
inline bool IsPlain(const GgmlType& type) { return type.elements == 1; }

// Reads a header. All claims of the header are checked against the file before memory is allocated
// for them. INVALID_ARGUMENT: another magic or version; counts, lengths or offsets beyond the end
// of the file; names that occur twice, are empty or not UTF-8; unknown types; rows that are not
// whole blocks; tensors that are not aligned or share bytes; an alignment that is not a power of
// two; a header over 1 GiB; names over 32 MiB or 2,000,000 dimensions in total.
absl::StatusOr<GgufHeader> ReadGguf(const OpenFile& file, uint64_t file_size);

// The beginning of a file, and keys with a value.
std::string GgufStart(uint64_t tensors, uint64_t keys);
std::string GgufStringKey(absl::string_view name, absl::string_view value);
std::string GgufUint32Key(absl::string_view name, uint32_t value);

// The entry of a tensor in the header. `offset` counts from the first tensor.
std::string GgufTensor(absl::string_view name, absl::Span<const int64_t> shape, int ggml_type,
                       uint64_t offset);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_GGUF_H_
