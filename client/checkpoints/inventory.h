// What each tensor of a model is: floats, or codes and their scales, and which of them form a
// quantized weight. Everything that reads checkpoints works from it: decoding, encoding, the dry
// run, and quantctl inspect.
#ifndef QUANTD_CHECKPOINTS_INVENTORY_H_
#define QUANTD_CHECKPOINTS_INVENTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoints/config.h"
#include "checkpoints/model.h"
#include "quantd/convert_weight.h"
#include "quantd/decode_grid.h"
#include "quantd/layout.h"

namespace quantd::checkpoints {

enum class TensorRole : uint8_t {
  kLinear,      // floats: the weight of a linear layer
  kFloats,      // other floats
  kOther,       // integers and truth values that are no codes, and types of GGML that are no codes
  kCodes,       // of a quantized weight
  kPart,        // of a quantized weight: scales, zero points, texts
  kActivation,  // belongs to quantized activations or to a quantized cache
  kUnknown,     // codes, or a part of a quantized weight, that nothing explains
};

struct InventoryEntry {
  TensorRole role = TensorRole::kOther;
  int32_t weight = -1;  // kCodes, kPart: the index of the quantized weight
  // Of floats: the name is that of a linear layer's or of experts' weight, whatever the dimensions.
  bool is_named_weight = false;
  // kFloats: why it is no linear layer's weight. kUnknown: why nothing explains it.
  std::string reason;
};

// A quantized weight: a layout of layout.h, or a grid of scales.
struct QuantizedWeight {
  std::string name;
  Shape shape;       // of the decoded weight
  std::string form;  // for people: "F8_E4M3, scales F32 for 128 x 128"
  Place main;        // the part with the codes, which the weight replaces
  // By layout: in the order of WeightParts(plan); nullopt: a constant that decoding does not read.
  // By grid: codes, scales, and zero points or nothing.
  std::vector<std::optional<Place>> parts;
  std::vector<Place> others;  // more parts, which were read already or say nothing
  std::optional<Grid> grid;   // else by layout
  WeightPlan plan;
  WeightFacts facts;
  bool transposed = false;  // of each matrix, rows and columns are exchanged in the decoded weight
};

struct Inventory {
  Quantization quantization;
  std::vector<std::vector<InventoryEntry>> entries;  // by shard and tensor
  std::vector<QuantizedWeight> weights;              // sorted by `main`

  const InventoryEntry& at(Place place) const { return entries[place.shard][place.tensor]; }
  // The first tensor with this role or a later one; nullopt: there is none.
  std::optional<Place> First(TensorRole role) const;
};

// Reads the small tensors that contain a shape, a text or a number. What cannot be explained is
// kUnknown, not an error: only errors of files are returned.
absl::StatusOr<Inventory> TakeInventory(const Model& model);

// "codes of 'm.weight': F8_E4M3 ..." and the like, for people.
std::string RoleText(const Inventory& inventory, Place place);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_INVENTORY_H_
