// Checks UTF-8, for the strings of protobuf and of JSON.
#ifndef QUANTD_UTF8_H_
#define QUANTD_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace quantd {

// The length of the longest prefix of `text` that is well-formed UTF-8 (Unicode 15, table 3-7: no
// surrogates, nothing over U+10FFFF, no over-long form, no truncated character).
size_t ValidUtf8Prefix(absl::string_view text);

}  // namespace quantd

#endif  // QUANTD_UTF8_H_
