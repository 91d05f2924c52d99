#include "source.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

void SwapBytes(std::string* packed, size_t width) {
  for (size_t i = 0; i + width <= packed->size(); i += width) {
    std::reverse(packed->data() + i, packed->data() + i + width);
  }
}

std::string RoundToFloat(const std::string& doubles) {
  std::string floats(doubles.size() / 2, '\0');
  for (size_t i = 0; i < doubles.size() / 8; ++i) {
    double wide;
    std::memcpy(&wide, doubles.data() + i * 8, 8);
    const auto narrow = static_cast<float>(wide);
    std::memcpy(floats.data() + i * 4, &narrow, 4);
  }
  return floats;
}

std::string Label(const TensorFile& file, const StoredTensor& tensor) {
  return tensor.name.empty() ? file.path : absl::StrCat(file.path, ": tensor '", tensor.name, "'");
}

}  // namespace

absl::StatusOr<Source> Source::Of(const TensorFile& file, const StoredTensor& tensor) {
  Source source;
  source.name_ = tensor.name;
  source.stored_ = tensor;
  source.mapped_ = file.mapped;
  source.shape_ = tensor.shape;
  source.type_ =
      tensor.type->family == Family::kFloat64 ? DataType::kFloat : tensor.type->data_type;
  if (source.type_ == DataType::kUnspecified) {
    return absl::InvalidArgumentError(
        absl::StrCat(Label(file, tensor), " is of type ", tensor.type->name,
                     ", which quantd does not take; convert it first, for example "
                     "a.astype(numpy.float32)"));
  }
  return source;
}

absl::StatusOr<Source> Source::As(const TensorFile& file, const StoredTensor& tensor, DataType type,
                                  absl::Span<const int64_t> shape) {
  const absl::StatusOr<int64_t> elements = ElementCount(shape, "shape");
  if (!elements.ok()) return elements.status();
  const uint64_t needed = ByteSize(type, *elements);
  if (needed != tensor.byte_size) {
    return absl::InvalidArgumentError(absl::StrCat(Label(file, tensor), " has ", tensor.byte_size,
                                                   " bytes, shape ", ShapeString(shape), " of ",
                                                   TypeName(type), " takes ", needed));
  }
  if (tensor.fortran_order && absl::MakeConstSpan(tensor.shape) != shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        Label(file, tensor), " is in Fortran order and cannot be given another shape"));
  }
  Source source;
  source.name_ = tensor.name;
  source.type_ = type;
  source.shape_.assign(shape.begin(), shape.end());
  source.stored_ = tensor;
  source.stored_.type = &ElementTypeOf(type);
  source.mapped_ = file.mapped;
  return source;
}

std::string Source::Read(const Box& box) const {
  const int bits = stored_.type->bits;
  std::string packed =
      GatherBox(mapped_->bytes().subspan(stored_.offset, stored_.byte_size), bits,
                stored_.fortran_order ? ColumnMajorStrides(shape_) : RowMajorStrides(shape_), box);
  if (stored_.big_endian && bits > 8) SwapBytes(&packed, bits / 8);
  return rounded_from_float64() ? RoundToFloat(packed) : packed;
}

}  // namespace quantd::cli
