// What a terminal can show.
#ifndef QUANTD_CLI_COMMANDS_TERMINAL_H_
#define QUANTD_CLI_COMMANDS_TERMINAL_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace quantd::cli {

// The columns of the terminal behind a descriptor; 0: it is none, or does not say.
int WidthOf(int descriptor);

enum class Style : uint8_t { kBold, kDim, kRed };

// The text in this style, if the descriptor is a terminal with colours and NO_COLOR is not set
// (https://no-color.org); else the text as it is.
std::string Styled(int descriptor, Style style, absl::string_view text);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_TERMINAL_H_
