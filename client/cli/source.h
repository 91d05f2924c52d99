// A stored tensor as the service wants it: little endian, row-major, of a type that the service
// has.
#ifndef QUANTD_CLI_SOURCE_H_
#define QUANTD_CLI_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "box.h"
#include "tensor_file.h"

namespace quantd::cli {

// A tensor to read pieces of. Immutable, safe from any thread.
class Source {
 public:
  // The tensor as it is stored; float64 becomes FLOAT (rounded). INVALID_ARGUMENT for every other
  // type that the service does not have, saying what to do.
  static absl::StatusOr<Source> Of(const TensorFile& file, const StoredTensor& tensor);
  // The same bytes read as elements of another type and shape: for packed types and others that the
  // file has no name for. INVALID_ARGUMENT when their number does not fit.
  static absl::StatusOr<Source> As(const TensorFile& file, const StoredTensor& tensor,
                                   DataType type, absl::Span<const int64_t> shape);

  const std::string& name() const { return name_; }
  DataType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return Product(shape_); }
  uint64_t byte_size() const { return stored_.byte_size; }  // in the file
  bool rounded_from_float64() const { return stored_.type->family == Family::kFloat64; }

  // The elements of a box, packed.
  std::string Read(const Box& box) const;
  std::string ReadAll() const { return Read(WholeBox(shape_)); }

 private:
  Source() = default;
  std::string name_;
  DataType type_ = DataType::kUnspecified;
  Shape shape_;
  StoredTensor stored_;
  std::shared_ptr<const MappedFile> mapped_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_SOURCE_H_
