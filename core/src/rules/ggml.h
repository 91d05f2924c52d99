// Decodes GGML's blocks to FLOAT, written from core/LAYOUTS.md. A block has 32 elements, or 256 if
// its type has a K in its name; all two-byte numbers are FLOAT16.
#ifndef QUANTD_SRC_RULES_GGML_H_
#define QUANTD_SRC_RULES_GGML_H_

#include <cstdint>

#include "quantd/layout.h"

namespace quantd::rules {

// Writes the elements of one block. REQUIRES: a gguf layout with blocks.
using GgmlDecoder = void (*)(const uint8_t* block, float* y);
GgmlDecoder GgmlDecoderOf(Layout layout);

}  // namespace quantd::rules

#endif  // QUANTD_SRC_RULES_GGML_H_
