// The input of a conversion: a .safetensors, a .gguf, or a folder in the format of the Hugging Face
// Hub, opened and checked. Only headers are read.
#ifndef QUANTD_CHECKPOINTS_MODEL_H_
#define QUANTD_CHECKPOINTS_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "checkpoints/files.h"
#include "checkpoints/gguf.h"
#include "checkpoints/json.h"
#include "checkpoints/tensor.h"

namespace quantd::checkpoints {

enum class ModelKind : uint8_t { kSafetensors, kGguf, kFolder };

// A file of weights.
struct Shard {
  InputFile file;
  std::vector<Tensor> tensors;                  // by offset; for a .gguf in the header's order
  std::map<std::string, std::string> metadata;  // __metadata__
};

// Files of a folder besides its shards.
inline constexpr char kConfig[] = "config.json";
inline constexpr char kIndex[] = "model.safetensors.index.json";
inline constexpr char kHfQuantConfig[] = "hf_quant_config.json";

// The position of a tensor in a model.
struct Place {
  uint32_t shard = 0, tensor = 0;
  auto operator<=>(const Place&) const = default;
};

struct Model {
  ModelKind kind = ModelKind::kSafetensors;
  std::string path;
  std::vector<Shard> shards;      // sorted by name
  std::vector<InputFile> others;  // of a folder: the files to copy
  // Of a folder: .safetensors that are not the model's (the index does not list them): not copied.
  std::vector<std::string> foreign;
  std::optional<InputFile> config_file, index_file;
  Json config, index;    // of a folder; objects; the index without its weight_map
  Json hf_quant_config;  // of a folder that ModelOpt wrote; else null
  GgufHeader gguf;       // of a .gguf, without its tensors
  absl::flat_hash_map<absl::string_view, Place> places;
  uint64_t kept = 0;  // approximate memory of the shards' headers

  const Tensor& tensor(Place place) const { return shards[place.shard].tensors[place.tensor]; }
  // Returns nullptr if there is no tensor with that name.
  const Tensor* Find(absl::string_view name) const;
  // The positions of all tensors, in their order.
  std::vector<Place> All() const;
  // All files, in the form that states compare.
  std::vector<const InputFile*> Files() const;
};

// Returns INVALID_ARGUMENT or a system error, with the file's name: a damaged header; a missing or
// truncated shard; an index that disagrees with the shards; a tensor in two shards.
absl::StatusOr<Model> OpenModel(const std::string& path);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_MODEL_H_
