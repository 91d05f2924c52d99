// A tensor file: which tensors it holds and where their bytes lie. .npy and .safetensors.
//
//   absl::StatusOr<TensorFile> file = OpenTensorFile("embeddings.npy");
//   for (const StoredTensor& tensor : file->tensors) ... file->Bytes(tensor) ...
//
// Every size in a header is checked against the file before it is believed: no allocation follows
// a header's word alone, and Bytes() never leaves the file.
#ifndef QUANTD_CLI_FILES_TENSOR_FILE_H_
#define QUANTD_CLI_FILES_TENSOR_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "files/element_type.h"
#include "files/mapped_file.h"
#include "quantd/shape.h"

namespace quantd::cli {

struct StoredTensor {
  std::string name;  // "" in a .npy
  const ElementType* type = nullptr;
  Shape shape;
  uint64_t offset = 0;  // in the file
  uint64_t byte_size = 0;
  bool fortran_order = false;  // first index varies fastest
  bool big_endian = false;
};

enum class FileFormat : uint8_t { kNpy, kSafetensors };

struct TensorFile {
  std::string path;
  FileFormat format = FileFormat::kNpy;
  std::shared_ptr<const MappedFile> mapped;
  std::vector<StoredTensor> tensors;            // in the order of the file
  std::map<std::string, std::string> metadata;  // __metadata__ of a .safetensors

  absl::Span<const uint8_t> Bytes(const StoredTensor& tensor) const {
    return mapped->bytes().subspan(tensor.offset, tensor.byte_size);
  }
};

// Opens and checks a file. INVALID_ARGUMENT that says what is wrong with it, and for another format
// what to do about it; the errors of MappedFile::Open.
absl::StatusOr<TensorFile> OpenTensorFile(const std::string& path);

// The format that a path's extension names. INVALID_ARGUMENT for another one.
absl::StatusOr<FileFormat> FormatOfPath(absl::string_view path);

// Reads the header of a .npy (versions 1 to 3) that is `file`. Bytes behind the array are allowed,
// as in numpy.
absl::StatusOr<StoredTensor> ParseNpy(absl::Span<const uint8_t> file);
// Header of a .npy in C order, padded so that the elements start at a multiple of 64.
std::string NpyHeader(absl::string_view descr, absl::Span<const int64_t> shape);

// Reads the header of a .safetensors that is `file` into tensors and metadata. Refused by name: two
// tensors that share bytes, bytes that belong to none, and names that come twice.
absl::Status ParseSafetensors(absl::Span<const uint8_t> file, TensorFile* result);
// Header of a .safetensors (length included) for tensors whose offsets count from the end of the
// header.
std::string SafetensorsHeader(const std::vector<StoredTensor>& tensors,
                              const std::map<std::string, std::string>& metadata);

// Bytes of a packed tensor. INVALID_ARGUMENT, from ElementCount or because they do not fit 63 bits.
absl::StatusOr<uint64_t> StoredBytes(int bits, absl::Span<const int64_t> shape);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_TENSOR_FILE_H_
