// config.json: what it says about quantized weights.
#ifndef QUANTD_CHECKPOINTS_CONFIG_H_
#define QUANTD_CHECKPOINTS_CONFIG_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "checkpoints/json.h"
#include "quantd/layout.h"

namespace quantd::checkpoints {

// quant_method of a quantization_config, at the top or one level below (as text_config has it);
// "unknown" when it does not say; empty when there is none.
std::string QuantMethod(const Json& config);
// Whether its weights can be decoded.
bool CanDecode(absl::string_view quant_method);

// config.json of the converted model: with what `layout`'s loaders read, as its package writes it.
// `ignored`: the modules left alone. `weights`: the type that the weights had.
std::string WithQuantization(Json config, Layout layout, const std::vector<std::string>& ignored,
                             DataType weights);
// Without any quantization_config.
std::string WithoutQuantization(Json config);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CONFIG_H_
