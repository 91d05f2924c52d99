// A file of weights that will be written: which tensors lie where, and what makes each.
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
  // A text (quant_state), whose length is known only when it is made. Texts lie behind the others.
  bool is_text = false;
};

// What makes some tensors of an output of one, or of a quantized weight's parts.
struct Job {
  Place source;                   // the tensor, or a quantized weight's main part
  uint32_t first = 0, count = 0;  // which tensors of the file it writes
  uint64_t bytes_before = 0;
};

// A piece of a file's begin: a text, or bytes of the .gguf that is read.
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
  std::map<size_t, std::string> texts;  // by tensor; each has a place from the begin on
  uint64_t header_bytes = 0;
  uint64_t bytes = 0;  // of the whole file; with texts an estimate
};

// The file `name` that shard `index` becomes. INVALID_ARGUMENT when it would hold a name twice, or
// have a header that would be refused when it is read.
absl::StatusOr<OutputFile> PlanSafetensors(const Model& model, const Conversion& conversion,
                                           uint32_t index, const std::string& name);
// The .gguf that the whole model becomes.
absl::StatusOr<OutputFile> PlanGguf(const Model& model, const Conversion& conversion,
                                    const std::string& name);

// The begin of a .safetensors: its header for the tensors' sizes as they are now, `header_bytes`
// long. Gives texts their places.
std::string SafetensorsBegin(OutputFile* file);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_OUTPUT_PLAN_H_
