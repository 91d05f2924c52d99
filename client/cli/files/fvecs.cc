#include "files/fvecs.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

int32_t LengthAt(absl::Span<const uint8_t> file, size_t offset) {
  int32_t length;
  std::memcpy(&length, file.data() + offset, sizeof(length));
  return length;
}

}  // namespace

absl::StatusOr<TensorView> ReadFvecs(absl::Span<const uint8_t> file, const std::string& path,
                                     OutputFile* scratch) {
  TensorView view;
  view.data_type = DataType::kFloat;
  view.shape = {0, 0};
  if (file.empty()) return view;
  if (file.size() < sizeof(int32_t)) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed .fvecs: ", file.size(), " bytes, the first length takes 4"));
  }
  const int32_t length = LengthAt(file, 0);
  if (length <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed .fvecs: embedding 0 has length ", length));
  }
  const size_t bytes = static_cast<size_t>(length) * sizeof(float);
  const size_t record = sizeof(int32_t) + bytes;
  if (file.size() % record != 0) {
    return absl::InvalidArgumentError(absl::StrCat("malformed .fvecs: ", file.size(),
                                                   " bytes are not a whole number of embeddings ",
                                                   "of length ", length, ", which take ", record));
  }
  const size_t embeddings = file.size() / record;
  view.shape = {static_cast<int64_t>(embeddings), length};
  for (size_t offset = 0; offset < file.size(); offset += record) {
    if (LengthAt(file, offset) != length) {
      return absl::InvalidArgumentError(
          absl::StrCat("malformed .fvecs: embedding ", offset / record, " has length ",
                       LengthAt(file, offset), ", the first ", length));
    }
  }
  QUANTD_RETURN_IF_ERROR(scratch->CreateNameless(path, embeddings * bytes));
  for (size_t i = 0; i < embeddings; ++i) {
    std::memcpy(scratch->bytes().data() + i * bytes, file.data() + i * record + sizeof(int32_t),
                bytes);
  }
  view.bytes = scratch->bytes();
  return view;
}

}  // namespace quantd::cli
