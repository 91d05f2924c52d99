// The tensors that a command writes: one .safetensors, or a .npy with others beside it.
//
//   Output output("out.safetensors");
//   size_t y = output.Add(Part("y", "", DataType::kInt8, shape));
//   output.Create();  ... output.bytes(y) ...  output.Commit();
//
// All sizes are known before the first element is computed, so that elements go to their place as
// they come, in any order, and memory stays bounded. Distinct tensors, and distinct bytes of one,
// may be written from distinct threads.
#ifndef QUANTD_CLI_OUTPUT_H_
#define QUANTD_CLI_OUTPUT_H_

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "box.h"
#include "output_file.h"
#include "tensor_file.h"

namespace quantd::cli {

// One tensor to write.
struct OutputPart {
  std::string name;    // in a .safetensors
  std::string suffix;  // of a .npy: "" is the path itself, "scale" is STEM.scale.npy
  const ElementType* type = nullptr;
  Shape shape;
  bool verbatim =
      false;  // copied from a file of this format: keeps whatever name its type had there
};
OutputPart Part(absl::string_view name, absl::string_view suffix, DataType type,
                absl::Span<const int64_t> shape);

class Output {
 public:
  // REQUIRES: FormatOfPath(path) is ok.
  explicit Output(std::string path);

  // Adds a tensor and returns its index. Types that the format has no name for are stored as bytes;
  // packed ones as one dimension of bytes.
  size_t Add(const OutputPart& part);
  // The name under which a reader finds a tensor: its own, or the file's in a set of .npy.
  std::string ReferenceTo(size_t index) const;
  // Text to be kept with the tensors: __metadata__ of a .safetensors; of a .npy only the key
  // "quantd", as STEM.quantization.json.
  void SetMetadata(const std::string& key, const std::string& value) { metadata_[key] = value; }

  FileFormat format() const { return format_; }
  // Creates the files. After this, bytes() may be written.
  absl::Status Create();
  absl::Span<uint8_t> bytes(size_t index) const { return spans_[index]; }
  absl::Status Commit();

 private:
  std::string NpyPath(absl::string_view suffix) const;

  const std::string path_;
  FileFormat format_;
  std::map<std::string, std::string> metadata_;
  std::vector<OutputPart> parts_;
  std::vector<StoredTensor> stored_;
  std::vector<absl::Span<uint8_t>> spans_;
  std::deque<OutputFile> files_;
};

// STEM.SUFFIX.npy for STEM.npy.
std::string SidecarPath(absl::string_view npy_path, absl::string_view suffix);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_OUTPUT_H_
