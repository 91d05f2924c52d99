// The output tensors of a command: one .safetensors, or a .npy and others beside it, in the format
// of client/FORMAT.md.
//
//   Output output("out.safetensors");
//   size_t y = output.Add({"y", "", DataType::kInt8, shape});
//   output.Create(rules);  ... output.bytes(y) ...  output.Commit();
//
// All sizes are known before the first element is computed, so that elements are written directly
// to their places, and memory is bounded. Different tensors, and different bytes of one tensor, may
// be written by different threads.
#ifndef QUANTD_CLI_FILES_OUTPUT_H_
#define QUANTD_CLI_FILES_OUTPUT_H_

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "files/mapped_file.h"
#include "files/quantized_file.h"
#include "files/tensor_file.h"

namespace quantd::cli {

// The files of an output at `path`; for a .npy also one per suffix, and the description.
std::vector<std::string> FilesOfOutput(const std::string& path,
                                       absl::Span<const absl::string_view> suffixes);
// A .npy that is not quantized has no description, and an existing one would be taken for its
// description: with `force` it is removed. OK if there is none, or one for a file of this name;
// otherwise ALREADY_EXISTS or INVALID_ARGUMENT.
absl::Status CheckMayRemoveDescription(const std::string& path, bool force);

class Output {
 public:
  // REQUIRES: FormatOfPath(path) is OK.
  explicit Output(std::string path);

  // Adds a tensor and returns its index. `suffix` selects the .npy of a set: "" is the path itself,
  // "scale" is STEM.scale.npy. Types that the format does not have are stored as bytes; packed
  // types as one dimension of bytes.
  size_t Add(const std::string& name, absl::string_view suffix, DataType type, const Shape& shape);
  // Adds a tensor of doubles, or one in the form of a file.
  size_t AddStored(const std::string& name, const ElementType& type, const Shape& shape);
  // The name under which readers find a tensor: its own, or that of its file in a set of .npy.
  Reference ReferenceTo(size_t index) const;
  // Text that is stored with the tensors: __metadata__ of a .safetensors; for a .npy only the key
  // "quantd", as STEM.quantization.json.
  void SetMetadata(const std::string& key, const std::string& value) { metadata_[key] = value; }
  // One more file that is written together with the tensors, or not at all.
  void AddText(const std::string& path, const std::string& text) { texts_[path] = text; }

  FileFormat format() const { return format_; }
  // The files that Create and Commit write or remove, except for those of AddText.
  std::vector<std::string> Files() const;
  // Returns INVALID_ARGUMENT if the header of a .safetensors, of at least `bytes`, would be refused
  // by readers.
  absl::Status CheckHeader(uint64_t bytes) const;
  // Creates the files; with `force` it replaces existing ones. After this, bytes() may be written.
  // REQUIRES: they are all different files, and none is an input (CheckApart, file_names.h).
  absl::Status Create(bool force);
  absl::Span<uint8_t> bytes(size_t index) { return spans_[index]; }
  // Writes all files to the disk, then renames them to their final names.
  absl::Status Commit();

 private:
  struct Part {
    StoredTensor stored;
    std::string suffix;
    DataType type;  // the meaning of the bytes
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
