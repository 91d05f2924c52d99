// A stored tensor in the form that operations need: little endian, row-major, of a type of the
// service.
#ifndef QUANTD_CLI_FILES_SOURCE_H_
#define QUANTD_CLI_FILES_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "files/output_file.h"
#include "files/tensor_file.h"
#include "quantd/parameters.h"

namespace quantd::cli {

// A tensor of a file. Immutable, thread-safe; keeps the file open.
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

  // The elements: in place in the file or, if the order or type differs, converted into `scratch`,
  // which is made in the folder of `path`. Both must outlive the view.
  absl::StatusOr<TensorView> View(const std::string& path, OutputFile* scratch) const;
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

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_SOURCE_H_
