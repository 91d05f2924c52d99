// What becomes of each tensor of a model: decided from headers alone, before anything is written.
#ifndef QUANTD_CHECKPOINTS_CONVERSION_H_
#define QUANTD_CHECKPOINTS_CONVERSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoints/choice.h"
#include "checkpoints/model.h"
#include "checkpoints/quantized.h"
#include "checkpoints/target.h"

namespace quantd::checkpoints {

enum class Fate : uint8_t {
  kConverted,  // encoded, or decoded (a quantized weight's main part)
  kCopied,     // with its type and bytes
  kToFloat,    // not converted, but a .gguf wants it as F32: floats of 0 or 1 dimension
  kPart,       // of a quantized weight, whose main part is another tensor
  kLeftOut,    // a .gguf has no type for it, or it has no use any more
};

struct Decision {
  Fate fate = Fate::kCopied;
  Layout layout = Layout::kFp8Tiles;  // of kConverted when it is encoded
  int32_t weight = -1;                // of kConverted when it is decoded: its index
  int32_t set = -1;                   // nvfp4 weights with one maximum: their set
  std::string reason;                 // why it is not converted
};

struct Conversion {
  Target target;
  std::vector<std::vector<Decision>> decisions;  // by shard and tensor
  std::vector<QuantizedWeight> weights;          // to be decoded
  std::vector<std::vector<Place>> sets;          // of nvfp4
  // Modules of 2-D .weight tensors that are left alone, and lm_head, sorted.
  std::vector<std::string> ignored;
  // Of the weights that are converted; of the first one when they differ.
  DataType weights_type = DataType::kUnspecified;
  bool removes_config = false;  // decoding left no weight quantized

  const Decision& at(Place place) const { return decisions[place.shard][place.tensor]; }
};

struct Selection {
  Choice choice;
  bool all = false;
};

// INVALID_ARGUMENT: a model that is quantized already; nothing to decode, or what cannot be.
// A WeightError for a weight that --only names and that cannot be converted.
absl::StatusOr<Conversion> Decide(const Model& model, const Target& target,
                                  const Selection& selection);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CONVERSION_H_
