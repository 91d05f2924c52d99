#include "server/stored_parameters/reference.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "quantd/field_error.h"

namespace quantd::stored_parameters {
namespace {

constexpr absl::string_view kAlgorithm = "@sha256:";
constexpr absl::string_view kSuffix = ".quantd";

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool IsHash(absl::string_view text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// The part of it that an error may quote.
std::string Quote(absl::string_view text) {
  constexpr size_t kMost = 160;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMost)), "'",
                      text.size() > kMost ? "…" : "");
}

constexpr absl::string_view kNameRule =
    "1 to 64 of a-z, 0-9, '.', '_' and '-', the first a letter or a digit";

}  // namespace

std::string Reference::Text() const {
  return is_full() ? absl::StrCat(name, kAlgorithm, hash) : name;
}

std::string Reference::FileName() const { return absl::StrCat(name, "@", hash, kSuffix); }

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), IsNameByte) && text.front() != '.' &&
         text.front() != '_' && text.front() != '-';
}

absl::Status CheckName(absl::string_view text, absl::string_view field) {
  if (IsName(text)) return absl::OkStatus();
  return FieldError(field, absl::StrCat(field, " is ", Quote(text), ", must be ", kNameRule));
}

absl::StatusOr<Reference> ParseReference(absl::string_view text, absl::string_view field) {
  // The length is checked before the text is searched or copied: it may be a whole message.
  constexpr size_t kMost = kMaxNameBytes + kAlgorithm.size() + kHashDigits;
  const size_t at = text.size() <= kMost ? text.find(kAlgorithm) : absl::string_view::npos;
  const absl::string_view name = text.substr(0, at);
  const absl::string_view hash =
      at == absl::string_view::npos ? "" : text.substr(at + kAlgorithm.size());
  if (IsName(name) && (at == absl::string_view::npos || IsHash(hash))) {
    return Reference{std::string(name), std::string(hash)};
  }
  return FieldError(field, absl::StrCat(field, " is ", Quote(text),
                                        ", must be name@sha256:HEX, HEX of 64 digits in lower "
                                        "case, or name, of ",
                                        kNameRule));
}

std::optional<Reference> ParseFileName(absl::string_view file) {
  if (!absl::ConsumeSuffix(&file, kSuffix)) return std::nullopt;
  const size_t at = file.find('@');
  if (at == absl::string_view::npos) return std::nullopt;
  Reference reference{std::string(file.substr(0, at)), std::string(file.substr(at + 1))};
  if (!IsName(reference.name) || !IsHash(reference.hash)) return std::nullopt;
  return reference;
}

}  // namespace quantd::stored_parameters
