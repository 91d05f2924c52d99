// Finds the quantized weights of a model by the names of their tensors.
#ifndef QUANTD_CHECKPOINTS_QUANTIZED_H_
#define QUANTD_CHECKPOINTS_QUANTIZED_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoints/model.h"
#include "quantd/convert_weight.h"
#include "quantd/layout.h"

namespace quantd::checkpoints {

struct QuantizedWeight {
  std::string name;
  WeightPlan plan;
  WeightFacts facts;
  Place main;  // the part with the codes, which the weight replaces
  // In the order of WeightParts(plan); nullopt: a constant that decoding does not read.
  std::vector<std::optional<Place>> parts;
  // Tensors that are useless without the codes, such as the scale of activations.
  std::vector<Place> companions;
};

// Sorted by `main`. Reads the small tensors that contain a shape (weight_shape, quant_state).
// INVALID_ARGUMENT, with the tensor's name: parts are missing or do not match, or the variant can't
// be decoded. For a .gguf: the tensors that decoding converts, which are the quantized ones, F16
// and BF16.
absl::StatusOr<std::vector<QuantizedWeight>> FindQuantizedWeights(const Model& model);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_QUANTIZED_H_
