// Reads and writes the quantization settings in config.json.
#ifndef QUANTD_CHECKPOINTS_CONFIG_H_
#define QUANTD_CHECKPOINTS_CONFIG_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "checkpoints/json.h"
#include "quantd/layout.h"

namespace quantd::checkpoints {

// quant_method of a quantization_config, at the top level or one level below (as in text_config);
// "unknown" if it has none; empty if there is no quantization_config.
std::string QuantMethod(const Json& config);
// Whether weights of this method can be decoded.
bool CanDecode(absl::string_view quant_method);

// config.json of the converted model: with the settings that `layout`'s loaders read, as its
// package writes them. `ignored`: the modules that were not converted. `weights`: the original type
// of the weights.
std::string WithQuantization(Json config, Layout layout, const std::vector<std::string>& ignored,
                             DataType weights);
// The config without any quantization_config.
std::string WithoutQuantization(Json config);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CONFIG_H_
