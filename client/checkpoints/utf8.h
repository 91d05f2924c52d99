// Whether bytes are UTF-8, as JSON wants its texts.
#ifndef QUANTD_CHECKPOINTS_UTF8_H_
#define QUANTD_CHECKPOINTS_UTF8_H_

#include "absl/strings/string_view.h"

namespace quantd::checkpoints {

// False for overlong forms, surrogates and what lies above U+10FFFF.
bool IsUtf8(absl::string_view text);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_UTF8_H_
