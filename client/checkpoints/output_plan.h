// A file of weights to be written: the positions of its tensors, and how each is made.
#ifndef QUANTD_CHECKPOINTS_OUTPUT_PLAN_H_
#define QUANTD_CHECKPOINTS_OUTPUT_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoints/conversion.h"
#include "checkpoints/model.h"

namespace quantd::checkpoints {

struct OutputTensor {
  std::string name;
  absl::string_view dtype;
  int ggml_type = -1;
  Shape shape;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  // A text (quant_state) has a length that is known only when it is made. Texts come last.
  bool is_text = false;
};

// Makes some tensors of an output from one tensor, or from the parts of a quantized weight.
struct Job {
  Place source;                   // the tensor, or the main part of a quantized weight
  uint32_t first = 0, count = 0;  // which tensors of the file it writes
  uint64_t bytes_before = 0;
};

// A piece of the beginning of a file: a text, or bytes of the input .gguf.
struct HeaderPiece {
  std::string text;
  uint64_t from = 0, bytes = 0;
};

struct OutputFile {
  std::string name;
  std::vector<OutputTensor> tensors;
  std::vector<Job> jobs;
  std::vector<HeaderPiece> header;  // of a .gguf
  std::map<std::string, std::string> metadata;
  std::map<size_t, std::string> texts;  // by tensor; each has an entry from the beginning
  uint64_t header_bytes = 0;
  uint64_t bytes = 0;  // of the whole file; an estimate if it has texts
};

// Plans the file `name` for shard `index`. Returns INVALID_ARGUMENT if it would contain a name
// twice, or have a header that readers would refuse.
absl::StatusOr<OutputFile> PlanSafetensors(const Model& model, const Conversion& conversion,
                                           uint32_t index, const std::string& name);
// Plans the .gguf for the whole model.
absl::StatusOr<OutputFile> PlanGguf(const Model& model, const Conversion& conversion,
                                    const std::string& name);

// The beginning of a .safetensors: its header for the present sizes of the tensors, `header_bytes`
// long. Sets the offsets of texts.
std::string SafetensorsBegin(OutputFile* file);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_OUTPUT_PLAN_H_
