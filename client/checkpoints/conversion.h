// Decides what is done with each tensor of a model, from headers only and before anything is
// written.
#ifndef QUANTD_CHECKPOINTS_CONVERSION_H_
#define QUANTD_CHECKPOINTS_CONVERSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoints/inventory.h"
#include "checkpoints/model.h"
#include "checkpoints/selection.h"

namespace quantd::checkpoints {

enum class Fate : uint8_t {
  kConverted,  // encoded, or decoded (the main part of a quantized weight)
  kCopied,     // with the same type and bytes
  kToFloat,    // not converted, but a .gguf wants it as F32: floats of 0 or 1 dimension
  kCast,       // floats of a decoded model, which get its type
  kPart,       // of a quantized weight whose main part is another tensor
  kLeftOut,    // a .gguf has no type for it, or it is no longer needed
};

struct Decision {
  Fate fate = Fate::kCopied;
  Layout layout = Layout::kFp8Tiles;  // kConverted by encoding: the layout
  int32_t weight = -1;                // kConverted by decoding: the weight's index
  int32_t set = -1;                   // nvfp4 weights with a common maximum: their set
  std::string reason;                 // why it is not converted
};

struct Conversion {
  Target target;
  std::vector<std::vector<Decision>> decisions;  // indexed by shard and tensor
  std::vector<QuantizedWeight> weights;          // the quantized ones, some or all to be decoded
  std::vector<std::vector<Place>> sets;          // of nvfp4
  // What loaders must not expect to be quantized: modules of 2-D .weight tensors and of experts
  // that are not converted, and heads; sorted. After decoding some weights only: theirs.
  std::vector<std::string> ignored;
  // The type of the converted weights; if they differ, that of the first.
  DataType weights_type = DataType::kUnspecified;
  bool removes_config = false;  // after decoding no weight is quantized

  const Decision& at(Place place) const { return decisions[place.shard][place.tensor]; }
  Decision& at(Place place) { return decisions[place.shard][place.tensor]; }
};

struct Selection {
  Choice choice;
  bool all = false;
};

// INVALID_ARGUMENT: the model is already quantized, something in it cannot be explained or decoded,
// or nothing would be converted. WeightError: a weight that --only names can't be converted.
absl::StatusOr<Conversion> Decide(const Model& model, const Target& target,
                                  const Selection& selection);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CONVERSION_H_
