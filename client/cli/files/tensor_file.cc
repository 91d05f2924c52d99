#include "files/tensor_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

std::string Label(const TensorFile& file, const StoredTensor& tensor) {
  const bool alone = file.format == FileFormat::kNpy;
  return alone ? file.path : absl::StrCat(file.path, ": tensor '", tensor.name, "'");
}

// Converts the elements to row-major and little endian; double to float.
void Convert(const StoredTensor& from, const uint8_t* in, uint8_t* out) {
  const size_t width = from.type->bits / 8, rank = from.shape.size();
  const bool narrow = from.type->family == Family::kFloat64;
  Shape stride(rank, 1), index(rank, 0);
  uint64_t elements = 1;
  for (size_t i = 0; i < rank; ++i) {
    const size_t dimension = from.fortran_order ? i : rank - 1 - i;
    stride[dimension] = static_cast<int64_t>(elements);
    elements *= from.shape[dimension];
  }
  int64_t position = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    uint8_t element[8];
    std::memcpy(element, in + position * width, width);
    if (from.big_endian) std::reverse(element, element + width);
    if (narrow) {
      double wide;
      std::memcpy(&wide, element, sizeof(wide));
      const auto value = static_cast<float>(wide);
      std::memcpy(element, &value, sizeof(value));
    }
    std::memcpy(out, element, narrow ? sizeof(float) : width);
    out += narrow ? sizeof(float) : width;
    for (size_t d = rank; d-- > 0;) {
      position += stride[d];
      if (++index[d] < from.shape[d]) break;
      position -= stride[d] * from.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

absl::StatusOr<uint64_t> StoredBytes(int bits, absl::Span<const int64_t> shape) {
  QUANTD_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape, "shape"));
  const auto size = (static_cast<unsigned __int128>(elements) * bits + 7) / 8;
  if (size > INT64_MAX) return absl::InvalidArgumentError("the tensor's size overflows");
  return static_cast<uint64_t>(size);
}

absl::StatusOr<FileFormat> FormatOfPath(absl::string_view path) {
  if (absl::EndsWithIgnoreCase(path, ".npy")) return FileFormat::kNpy;
  if (absl::EndsWithIgnoreCase(path, ".safetensors")) return FileFormat::kSafetensors;
  if (absl::EndsWithIgnoreCase(path, ".npz")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": a .npz is a zip of .npy files; unpack it (unzip ", path, ") and name one"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": the name must end in .npy or .safetensors"));
}

absl::StatusOr<TensorFile> OpenTensorFile(const std::string& path) {
  QUANTD_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> mapped, MappedFile::Open(path));
  QUANTD_ASSIGN_OR_RETURN(const FileFormat format, FormatOfPath(path));
  TensorFile file;
  file.path = path;
  file.format = format;
  file.mapped = std::move(mapped);
  absl::Status status;
  if (file.format == FileFormat::kNpy) {
    absl::StatusOr<StoredTensor> tensor = ParseNpy(file.mapped->bytes());
    status = tensor.status();
    if (status.ok()) file.tensors.push_back(*std::move(tensor));
  } else {
    status = ParseSafetensors(file.mapped->bytes(), &file);
  }
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  }
  return file;
}

absl::StatusOr<Source> Source::Of(const TensorFile& file, const StoredTensor& tensor) {
  Source source;
  source.stored_ = tensor;
  source.mapped_ = file.mapped;
  source.type_ =
      tensor.type->family == Family::kFloat64 ? DataType::kFloat : tensor.type->data_type;
  if (source.type_ != DataType::kUnspecified) return source;
  return absl::InvalidArgumentError(absl::StrCat(
      Label(file, tensor), " is of type ", tensor.type->name,
      ", which quantd does not take; convert it first, for example a.astype(numpy.float32)"));
}

absl::StatusOr<Source> Source::As(const TensorFile& file, const StoredTensor& tensor, DataType type,
                                  absl::Span<const int64_t> shape) {
  QUANTD_ASSIGN_OR_RETURN(const uint64_t needed, StoredBytes(Info(type).bits, shape));
  if (needed != tensor.byte_size) {
    return absl::InvalidArgumentError(absl::StrCat(Label(file, tensor), " has ", tensor.byte_size,
                                                   " bytes, shape ", ShapeString(shape), " of ",
                                                   TypeName(type), " takes ", needed));
  }
  const bool same_width = tensor.type->bits == Info(type).bits;
  if (tensor.fortran_order && (absl::MakeConstSpan(tensor.shape) != shape || !same_width)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Label(file, tensor), " is in Fortran order and cannot be given another shape or width"));
  }
  Source source;
  source.type_ = type;
  source.stored_ = tensor;
  source.stored_.shape.assign(shape.begin(), shape.end());
  source.stored_.type = &ElementTypeOf(type);
  source.stored_.big_endian = tensor.big_endian && same_width;
  source.mapped_ = file.mapped;
  return source;
}

TensorView Source::Outline() const {
  const uint64_t size = rounded_from_float64() ? byte_size() / 2 : byte_size();
  return {type_, stored_.shape, mapped_->bytes().subspan(stored_.offset, size)};
}

absl::StatusOr<Operand> Source::View(const std::string& path) const {
  TensorView view = Outline();
  if (lies_ready() || byte_size() == 0) return Operand{view, mapped_};
  auto converted = std::make_shared<OutputFile>();
  QUANTD_RETURN_IF_ERROR(converted->CreateNameless(path, view.bytes.size()));
  Convert(stored_, mapped_->bytes().data() + stored_.offset, converted->bytes().data());
  view.bytes = converted->bytes();
  return Operand{view, converted};
}

absl::StatusOr<Operand> ValuesOf(const TensorFile& file, const StoredTensor& tensor,
                                 const std::string& path) {
  QUANTD_ASSIGN_OR_RETURN(const Source source, Source::Of(file, tensor));
  return source.View(path);
}

}  // namespace quantd::cli
