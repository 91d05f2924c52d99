// What protobuf calls a valid string.
#ifndef QUANTD_SERVER_WIRE_UTF8_H_
#define QUANTD_SERVER_WIRE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace quantd::wire {

// Bytes of the longest prefix of `text` that is well-formed UTF-8 (Unicode 15, table 3-7: no
// surrogates, nothing over U+10FFFF, no over-long form, no cut character).
size_t ValidUtf8Prefix(absl::string_view text);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_UTF8_H_
