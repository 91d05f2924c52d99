// A stored tensor as an operation wants it: little endian, row-major, of a type that the service
// has.
#ifndef QUANTD_CLI_FILES_SOURCE_H_
#define QUANTD_CLI_FILES_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "files/output_file.h"
#include "files/tensor_file.h"
#include "quantd/parameters.h"

namespace quantd::cli {

// A tensor of a file. Immutable, safe from any thread; keeps the file open.
class Source {
 public:
  // The tensor as it is stored; float64 becomes FLOAT (rounded). INVALID_ARGUMENT for every other
  // type that the service does not have, saying what to do.
  static absl::StatusOr<Source> Of(const TensorFile& file, const StoredTensor& tensor);
  // The same bytes read as elements of another type and shape: for packed types and others that the
  // file has no name for. INVALID_ARGUMENT when their number does not fit.
  static absl::StatusOr<Source> As(const TensorFile& file, const StoredTensor& tensor,
                                   DataType type, absl::Span<const int64_t> shape);

  DataType type() const { return type_; }
  const Shape& shape() const { return stored_.shape; }
  uint64_t byte_size() const { return stored_.byte_size; }  // in the file
  bool rounded_from_float64() const { return stored_.type->family == Family::kFloat64; }

  // The elements: where they lie in the file, or, in another order or type there, converted into
  // `scratch`, which is made in the folder of `path`. Both must outlive the view.
  absl::StatusOr<TensorView> View(const std::string& path, OutputFile* scratch) const;
  // Type and shape alone, with bytes that must not be read where they are to be converted: what a
  // plan looks at.
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
