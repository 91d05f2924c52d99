// .npy: "\x93NUMPY", version, length of the header, the header, the elements. The header is a
// Python dictionary of three entries:
//
//   93 4E 55 4D 50 59 | 01 00 | 76 00 | {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "files/tensor_file.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);

absl::Status MalformedNpy(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed .npy header: ", what));
}

// Reads the few Python literals that such a header contains.
class Literals {
 public:
  explicit Literals(absl::string_view text) : rest_(text) {}

  bool Take(absl::string_view token) {
    SkipSpace();
    if (rest_.substr(0, token.size()) != token) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  bool TakeString(absl::string_view* value) {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return false;
    *value = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool TakeBool(bool* value) {
    *value = Take("True");
    return *value || Take("False");
  }
  bool TakeShape(Shape* shape) {
    if (!Take("(")) return false;
    while (!Take(")")) {
      SkipSpace();
      size_t digits = 0;
      while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) ++digits;
      int64_t length;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &length)) return false;
      if (shape->size() == kMaxRank) return false;
      shape->push_back(length);
      rest_.remove_prefix(digits);
      Take("L");  // Python 2 wrote long integers in this way
      if (!Take(",") && rest_.substr(0, 1) != ")") return false;
    }
    return true;
  }

 private:
  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  absl::string_view rest_;
};

absl::Status SetType(absl::string_view descr, StoredTensor* tensor) {
  absl::string_view code = descr;
  if (!code.empty() && absl::string_view("<>|=").find(code[0]) != absl::string_view::npos) {
    tensor->big_endian = code[0] == '>';
    code.remove_prefix(1);
  }
  tensor->type = FindByNpy(code);
  if (tensor->type != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("elements of type '", descr,
                   "' cannot be read; convert the array, for example a.astype(numpy.float32)"));
}

}  // namespace

absl::StatusOr<StoredTensor> ParseNpy(absl::Span<const uint8_t> file) {
  const absl::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.substr(0, kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError("not a .npy file: it does not start with \\x93NUMPY");
  }
  if (file.size() < 10) return MalformedNpy("the file ends in it");
  const int version = file[6];
  if (version < 1 || version > 3) return MalformedNpy(absl::StrCat("version ", version));
  const size_t start = version == 1 ? 10 : 12;
  if (file.size() < start) return MalformedNpy("the file ends in it");
  const uint64_t length = version == 1 ? file[8] | file[9] << 8
                                       : file[8] | file[9] << 8 | file[10] << 16 |
                                             static_cast<uint64_t>(file[11]) << 24;
  if (length > file.size() - start) {
    return MalformedNpy(absl::StrCat("it claims ", length, " bytes, the file has ", file.size()));
  }

  StoredTensor tensor;
  Literals literals(text.substr(start, length));
  bool has_descr = false, has_order = false, has_shape = false;
  if (!literals.Take("{")) return MalformedNpy("not a dictionary");
  while (!literals.Take("}")) {
    absl::string_view key, descr;
    if (!literals.TakeString(&key) || !literals.Take(":")) return MalformedNpy("not a dictionary");
    if (key == "descr") {
      if (literals.Take("[")) {
        return absl::InvalidArgumentError("a structured array; save one field of it on its own");
      }
      if (!literals.TakeString(&descr)) return MalformedNpy("descr is not a string");
      QUANTD_RETURN_IF_ERROR(SetType(descr, &tensor));
      has_descr = true;
    } else if (key == "fortran_order") {
      if (!literals.TakeBool(&tensor.fortran_order)) return MalformedNpy("fortran_order");
      has_order = true;
    } else if (key == "shape") {
      tensor.shape.clear();
      if (!literals.TakeShape(&tensor.shape))
        return MalformedNpy("shape is not a tuple of lengths");
      has_shape = true;
    } else {
      return MalformedNpy(absl::StrCat("unknown key '", key, "'"));
    }
    literals.Take(",");
  }
  if (!has_descr || !has_order || !has_shape) return MalformedNpy("a key is missing");

  QUANTD_ASSIGN_OR_RETURN(const uint64_t size, StoredBytes(tensor.type->bits, tensor.shape));
  tensor.offset = start + length;
  tensor.byte_size = size;
  if (tensor.byte_size > file.size() - tensor.offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        "truncated: shape ", ShapeString(tensor.shape), " of ", tensor.type->name, " takes ",
        tensor.byte_size, " bytes, the file has ", file.size() - tensor.offset, " of them"));
  }
  return tensor;
}

std::string NpyHeader(absl::string_view descr, absl::Span<const int64_t> shape) {
  std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(shape, ", "), shape.size() == 1 ? "," : "", "), }");
  const size_t unpadded = 10 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header.push_back('\n');
  std::string result(kMagic);
  const char prefix[] = {1, 0, static_cast<char>(header.size() & 0xff),
                         static_cast<char>(header.size() >> 8)};
  result.append(prefix, sizeof(prefix));
  return result + header;
}

}  // namespace quantd::cli
