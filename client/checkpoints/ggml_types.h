// The types of tensors in a .gguf: GGML's numbers, names and sizes.
#ifndef QUANTD_CHECKPOINTS_GGML_TYPES_H_
#define QUANTD_CHECKPOINTS_GGML_TYPES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "quantd/data_type.h"

namespace quantd::checkpoints {

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

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_GGML_TYPES_H_
