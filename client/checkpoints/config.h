// Reads and writes the quantization settings in config.json.
#ifndef QUANTD_CHECKPOINTS_CONFIG_H_
#define QUANTD_CHECKPOINTS_CONFIG_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "checkpoints/json.h"
#include "quantd/layout.h"

namespace quantd::checkpoints {

// A grid of scales that a config allows: one for `rows` x `columns` elements; 0: all of them.
struct GridOfScales {
  int64_t rows = 0, columns = 0;
};

// What a model's config says about how its weights are quantized.
struct Quantization {
  std::string method;  // quant_method; "unknown" if it has none; empty: nothing is quantized
  // Why it cannot be decoded, empty if it can.
  std::string refused;
  // The grids of its schemes; empty: the config names none, so that shapes alone tell.
  std::vector<GridOfScales> grids;
  int bits = 0;  // of integers, if all schemes have the same; else 0
};

// Looks at the top level of config.json and one below (as in text_config), and at
// hf_quant_config.json, which ModelOpt writes (null: there is none).
Quantization ReadQuantization(const Json& config, const Json& hf_quant_config);

// config.json of the converted model: with the settings that `layout`'s loaders read, as its
// package writes them. `ignored`: the modules that were not converted. `weights`: the original type
// of the weights.
std::string WithQuantization(Json config, Layout layout, const std::vector<std::string>& ignored,
                             DataType weights);
// The config with more modules in the list of those that are not quantized.
std::string WithIgnored(Json config, const std::vector<std::string>& modules);
// The config without any quantization_config, whose floats are `output`.
std::string WithoutQuantization(Json config, DataType output);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CONFIG_H_
