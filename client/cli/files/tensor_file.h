// A tensor file: its tensors and the positions of their bytes. .npy and .safetensors.
//
//   absl::StatusOr<TensorFile> file = OpenTensorFile("embeddings.npy");
//   for (const StoredTensor& tensor : file->tensors) ... file->Bytes(tensor) ...
//
// Every size in a header is checked against the file before it is used: no allocation depends on
// the header alone, and Bytes() never leaves the file.
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
#include "quantd/parameters.h"
#include "quantd/shape.h"

namespace quantd::cli {

// The most tensors of a file that is read or written, and of a model. It bounds the
// memory.
inline constexpr size_t kMaxTensors = 500'000;

struct StoredTensor {
  std::string name;  // "" in a .npy
  const ElementType* type = nullptr;
  Shape shape;
  uint64_t offset = 0;  // in the file
  uint64_t byte_size = 0;
  bool fortran_order = false;  // the first index varies fastest
  bool big_endian = false;
};

enum class FileFormat : uint8_t { kNpy, kSafetensors };

struct TensorFile {
  std::string path;
  FileFormat format = FileFormat::kNpy;
  std::shared_ptr<const MappedFile> mapped;
  std::vector<StoredTensor> tensors;            // in file order
  std::map<std::string, std::string> metadata;  // __metadata__ of a .safetensors

  // The tensor's name when it is written to another file. The tensor of a .npy has no name itself.
  std::string NameOf(const StoredTensor& tensor) const {
    return format == FileFormat::kNpy ? "y" : tensor.name;
  }
  absl::Span<const uint8_t> Bytes(const StoredTensor& tensor) const {
    return mapped->bytes().subspan(tensor.offset, tensor.byte_size);
  }
};

// Opens and checks a file. INVALID_ARGUMENT says what is wrong with it, and what to do about
// another format; also returns the errors of MappedFile::Open.
absl::StatusOr<TensorFile> OpenTensorFile(const std::string& path);

// The format of a path's extension. INVALID_ARGUMENT if it is unknown.
absl::StatusOr<FileFormat> FormatOfPath(absl::string_view path);

// Reads the header of `file`, a .npy (versions 1 to 3). Bytes after the array are allowed, as in
// numpy.
absl::StatusOr<StoredTensor> ParseNpy(absl::Span<const uint8_t> file);
// The header of a .npy in C order, padded so that the elements start at a multiple of 64.
std::string NpyHeader(absl::string_view descr, absl::Span<const int64_t> shape);

// Reads the header of `file`, a .safetensors, into tensors and metadata. Refuses, with the name,
// tensors that share bytes, bytes that belong to no tensor, and names that occur twice.
absl::Status ParseSafetensors(absl::Span<const uint8_t> file, TensorFile* result);
// For a file that is not in memory: the length of its header, from its first 8 bytes, and the
// contents of the header. REQUIRES: file_size >= text.size() + 8.
absl::StatusOr<uint64_t> SafetensorsHeaderLength(absl::Span<const uint8_t> start,
                                                 uint64_t file_size);
absl::Status ParseSafetensorsHeader(absl::string_view text, uint64_t file_size, TensorFile* result);
// The sizes of a header, or their lower bounds: the total, and without what JSON adds.
struct HeaderSizes {
  uint64_t bytes = 0, tensors = 0, dimensions = 0, metadata_bytes = 0;
};
// Returns INVALID_ARGUMENT for a header that readers would refuse.
absl::Status CheckSafetensorsHeader(absl::string_view path, const HeaderSizes& sizes);
// Makes the header of a .safetensors, one tensor at a time.
class SafetensorsHeaderWriter {
 public:
  // `tensors`: their approximate number.
  SafetensorsHeaderWriter(const std::map<std::string, std::string>& metadata, size_t tensors);
  // Offsets count from the end of the header.
  void Add(const std::string& name, absl::string_view dtype, absl::Span<const int64_t> shape,
           uint64_t begin, uint64_t end);
  // The header, preceded by its length. Padded with spaces to at least `least` bytes in total, and
  // to a multiple of 8.
  std::string Finish(uint64_t least = 0);

 private:
  std::string text_;
};
// Makes a header for several tensors.
std::string SafetensorsHeader(const std::vector<StoredTensor>& tensors,
                              const std::map<std::string, std::string>& metadata);

// Bytes of a packed tensor. INVALID_ARGUMENT from ElementCount, or if they do not fit 63 bits.
absl::StatusOr<uint64_t> StoredBytes(int bits, absl::Span<const int64_t> shape);

// A tensor, and the owner of its bytes.
struct Operand {
  TensorView view;
  std::shared_ptr<const void> owner;
};

// A tensor of a file in the form that operations need: little endian, row-major, of a type of the
// service. Immutable, thread-safe; keeps the file open.
class Source {
 public:
  // The tensor as it is stored; float64 is rounded to FLOAT. INVALID_ARGUMENT for other types that
  // the service does not have; the text says what to do.
  static absl::StatusOr<Source> Of(const TensorFile& file, const StoredTensor& tensor);
  // The same bytes as elements of another type and shape: for packed types and others that the file
  // format does not have. INVALID_ARGUMENT if their number does not match.
  static absl::StatusOr<Source> As(const TensorFile& file, const StoredTensor& tensor,
                                   DataType type, absl::Span<const int64_t> shape);

  DataType type() const { return type_; }
  const Shape& shape() const { return stored_.shape; }
  uint64_t byte_size() const { return stored_.byte_size; }  // in the file
  bool rounded_from_float64() const { return stored_.type->family == Family::kFloat64; }

  // The elements: in place in the file or, if the order or type differs, converted into a file
  // without a name in the folder of `path`.
  absl::StatusOr<Operand> View(const std::string& path) const;
  // Only type and shape, for plans. The bytes must not be read if they have to be
  // converted.
  TensorView Outline() const;

 private:
  Source() = default;
  bool lies_ready() const {
    return !stored_.fortran_order && !stored_.big_endian && !rounded_from_float64();
  }

  DataType type_ = DataType::kUnspecified;
  StoredTensor stored_;
  std::shared_ptr<const MappedFile> mapped_;
};

// The elements of Source::Of.
absl::StatusOr<Operand> ValuesOf(const TensorFile& file, const StoredTensor& tensor,
                                 const std::string& path);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_TENSOR_FILE_H_
