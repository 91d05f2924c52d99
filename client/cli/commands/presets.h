// The formats of vector databases: the values of --preset.
#ifndef QUANTD_CLI_COMMANDS_PRESETS_H_
#define QUANTD_CLI_COMMANDS_PRESETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "quantd/parameters.h"

namespace quantd::cli {

std::vector<std::string> PresetNames();

// Recipe, output type and bit options. Returns INVALID_ARGUMENT, with all names, if it is unknown.
absl::StatusOr<QuantizeEmbeddingsParameters> PresetOf(absl::string_view name);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_PRESETS_H_
