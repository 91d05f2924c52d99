#include "commands/presets.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "files/closest_name.h"

namespace quantd::cli {
namespace {

using Recipe = EmbeddingRecipe;

struct Preset {
  const char* name;
  Recipe recipe;
  DataType type;
  BitOrder order = BitOrder::kUnspecified;
  BitThreshold threshold = BitThreshold::kUnspecified;
  SignedBits signed_bits = SignedBits::kUnspecified;
};

// The same lines as in client/python/src/quantd/embeddings.py; tests/e2e compares them.
constexpr Preset kPresets[] = {
    {"sentence-transformers-int8", Recipe::kRanges, DataType::kInt8},
    {"sentence-transformers-uint8", Recipe::kRanges, DataType::kUint8},
    {"sentence-transformers-binary", Recipe::kBits, DataType::kInt8},
    {"sentence-transformers-ubinary", Recipe::kBits, DataType::kUint8},
    {"cohere-binary", Recipe::kBits, DataType::kInt8},
    {"vespa", Recipe::kBits, DataType::kInt8, BitOrder::kUnspecified, BitThreshold::kUnspecified,
     SignedBits::kTwosComplement},
    {"pgvector", Recipe::kBits, DataType::kUint8},
    {"sqlite-vec-int8", Recipe::kUnit, DataType::kInt8},
    {"sqlite-vec-binary", Recipe::kBits, DataType::kUint8, BitOrder::kLsbFirst},
    {"usearch-i8", Recipe::kDirection, DataType::kInt8},
    {"vllm-binary", Recipe::kBits, DataType::kInt8, BitOrder::kUnspecified,
     BitThreshold::kGreaterOrEqual},
    {"mongodb", Recipe::kBits, DataType::kUint8},
};

}  // namespace

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

absl::StatusOr<QuantizeEmbeddingsParameters> PresetOf(absl::string_view name) {
  for (const Preset& preset : kPresets) {
    if (name != preset.name) continue;
    QuantizeEmbeddingsParameters parameters;
    parameters.recipe = preset.recipe;
    parameters.output_type = preset.type;
    parameters.bit_order = preset.order;
    parameters.bit_threshold = preset.threshold;
    parameters.signed_bits = preset.signed_bits;
    return parameters;
  }
  return absl::InvalidArgumentError(absl::StrCat("--preset: no preset '", name, "'",
                                                 DidYouMean(name, PresetNames()), "; use ",
                                                 absl::StrJoin(PresetNames(), ", ")));
}

}  // namespace quantd::cli
