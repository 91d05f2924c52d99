// The tensors that a command writes: one .safetensors, or a .npy with others beside it, laid out as
// client/FORMAT.md says.
//
//   Output output("out.safetensors");
//   size_t y = output.Add({"y", "", DataType::kInt8, shape});
//   output.Create(rules);  ... output.bytes(y) ...  output.Commit();
//
// All sizes are known before the first element is computed, so that elements go to their place as
// they come, and memory stays bounded. Distinct tensors, and distinct bytes of one, may be written
// from distinct threads.
#ifndef QUANTD_CLI_FILES_OUTPUT_H_
#define QUANTD_CLI_FILES_OUTPUT_H_

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "files/output_file.h"
#include "files/quantized_file.h"
#include "files/tensor_file.h"

namespace quantd::cli {

// The files of an output at `path`: of a .npy also one for each suffix, and the description.
std::vector<std::string> FilesOfOutput(const std::string& path,
                                       absl::Span<const absl::string_view> suffixes);
// A .npy that is not quantized has no description, and one that lies there would be taken for its:
// with `force` it is removed. OK when there is none, or one of a file of this name; else
// ALREADY_EXISTS or INVALID_ARGUMENT.
absl::Status CheckMayRemoveDescription(const std::string& path, bool force);

class Output {
 public:
  // REQUIRES: FormatOfPath(path) is ok.
  explicit Output(std::string path);

  // Adds a tensor and returns its index. `suffix` says which .npy of a set it is: "" is the path
  // itself, "scale" is STEM.scale.npy. Types that the format has no name for are stored as bytes;
  // packed ones as one dimension of bytes.
  size_t Add(const std::string& name, absl::string_view suffix, DataType type, const Shape& shape);
  // Adds a tensor of doubles, or one as it is in a file.
  size_t AddStored(const std::string& name, const ElementType& type, const Shape& shape);
  // How a reader finds a tensor: by its own name, or the file's in a set of .npy.
  Reference ReferenceTo(size_t index) const;
  // Text to be kept with the tensors: __metadata__ of a .safetensors; of a .npy only the key
  // "quantd", as STEM.quantization.json.
  void SetMetadata(const std::string& key, const std::string& value) { metadata_[key] = value; }
  // One more file that is written with the tensors, or not at all.
  void AddText(const std::string& path, const std::string& text) { texts_[path] = text; }

  FileFormat format() const { return format_; }
  // The files that Create and Commit write or remove, but for those of AddText.
  std::vector<std::string> Files() const;
  // INVALID_ARGUMENT when the header of a .safetensors, of `bytes` or more, would be refused when
  // it is read.
  absl::Status CheckHeader(uint64_t bytes) const;
  // Creates the files, over those that exist with `force`. After this, bytes() may be written.
  // REQUIRES: all of them are distinct files, and none is read (CheckApart, file_names.h).
  absl::Status Create(bool force);
  absl::Span<uint8_t> bytes(size_t index) { return spans_[index]; }
  // Brings all files to the disk, then to their places.
  absl::Status Commit();

 private:
  struct Part {
    StoredTensor stored;
    std::string suffix;
    DataType type;  // what the bytes mean
    Shape shape;
    std::string descr;  // of a .npy
  };
  absl::Status CreateNpy();
  absl::Status CreateSafetensors();
  absl::Status CreateText(const std::string& path, const std::string& text);

  const std::string path_;
  FileFormat format_;
  bool force_ = false;
  std::map<std::string, std::string> metadata_, texts_;
  std::vector<Part> parts_;
  std::vector<absl::Span<uint8_t>> spans_;
  std::deque<OutputFile> files_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_OUTPUT_H_
