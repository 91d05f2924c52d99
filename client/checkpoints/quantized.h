// The quantized weights of a model, found by their tensors' names.
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
  Place main;  // the part that holds the codes: the weight takes its place
  // In the order of WeightParts(plan); nullopt: a constant that decoding does not read.
  std::vector<std::optional<Place>> parts;
  // What is of no use without the codes, such as the scale of activations.
  std::vector<Place> companions;
};

// By `main`. Reads the small tensors that say a shape (weight_shape, quant_state).
// INVALID_ARGUMENT, naming the tensor: parts that are missing or do not fit one another, or a
// variant that cannot be decoded. Of a .gguf: the tensors that decoding converts, which are the
// quantized ones, F16 and BF16.
absl::StatusOr<std::vector<QuantizedWeight>> FindQuantizedWeights(const Model& model);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_QUANTIZED_H_
