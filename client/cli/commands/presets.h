// The formats of vector databases: the names that --preset takes.
#ifndef QUANTD_CLI_COMMANDS_PRESETS_H_
#define QUANTD_CLI_COMMANDS_PRESETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "quantd/parameters.h"

namespace quantd::cli {

std::vector<std::string> PresetNames();

// Recipe, output type and the switches of bits. INVALID_ARGUMENT that lists the names.
absl::StatusOr<QuantizeEmbeddingsParameters> PresetOf(absl::string_view name);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_PRESETS_H_
