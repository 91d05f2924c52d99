#include "server/stored_parameters/library.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/errors/reason.h"
#include "server/log/log.h"
#include "server/stored_parameters/canonical.h"
#include "server/stored_parameters/hash.h"

namespace quantd::stored_parameters {
namespace {

absl::Status NotFound(absl::string_view field, const std::string& message) {
  return errors::WithReason(FieldError(field, message, absl::StatusCode::kNotFound),
                            "PARAMETERS_NOT_FOUND");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Library>> Library::Open(const std::string& folder,
                                                       const Limits& limits) {
  absl::StatusOr<Folder> opened = Folder::Open(folder);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Library>(new Library(*std::move(opened), limits));
}

absl::StatusOr<SetPointer> Library::FindInMemory(absl::string_view reference,
                                                 absl::string_view field) {
  const absl::StatusOr<Reference> parsed = ParseReference(reference, field);
  if (!parsed.ok()) return parsed.status();
  return parsed->is_full() ? cache_.Find(parsed->Text()) : nullptr;
}

absl::StatusOr<SetPointer> Library::Find(absl::string_view reference, absl::string_view field) {
  absl::StatusOr<Reference> parsed = ParseReference(reference, field);
  if (!parsed.ok()) return parsed.status();
  if (!parsed->is_full()) {
    absl::StatusOr<std::vector<Reference>> named = folder_.Named(parsed->name, 2);
    if (!named.ok()) return named.status();
    if (named->empty()) {
      return NotFound(field, absl::StrCat("no stored parameters have the name ", parsed->name));
    }
    if (named->size() > 1) {
      return FieldError(field, absl::StrCat(field, " is ", parsed->name,
                                            ", a name that several sets have: ", (*named)[0].Text(),
                                            ", ", (*named)[1].Text()));
    }
    *parsed = std::move(named->front());
  }
  if (SetPointer set = cache_.Find(parsed->Text()); set != nullptr) return set;
  absl::StatusOr<SetPointer> set = Load(*parsed);
  if (absl::IsNotFound(set.status())) return NotFound(field, std::string(set.status().message()));
  return set;
}

absl::StatusOr<SetPointer> Library::Load(const Reference& reference) {
  const std::lock_guard lock(loading_);
  if (SetPointer set = cache_.Find(reference.Text()); set != nullptr) return set;
  const uint64_t size = std::min(folder_.Size(reference), kMaxSetBytes);
  if (size + DecodeBytes(size) > cache_.most_bytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(reference.Text(), " takes ", size + DecodeBytes(size),
                     " bytes to read, but stored parameters may use ", cache_.most_bytes(),
                     " bytes of this server's memory"));
  }
  if (!cache_.MakeRoom(size, DecodeBytes(size))) {
    return errors::WithReason(
        absl::UnavailableError(
            "calls are using too many other sets of parameters; try again later"),
        "PARAMETERS_BUSY");
  }
  absl::StatusOr<std::string> bytes = folder_.Read(reference);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<std::unique_ptr<wire::StoredSet>> set = Decode(*std::move(bytes));
  if (!set.ok()) {
    static log::Repeated lines(log::Level::kWarn, "bad file of parameters");
    lines.Write([&] {
      return log::Fields{{"file", reference.FileName()}, {"why", set.status().message()}};
    });
    return absl::NotFoundError(
        absl::StrCat("the file of ", reference.Text(), " is not a set of parameters"));
  }
  (*set)->reference = reference.Text();
  return cache_.Add(*std::move(set));
}

absl::StatusOr<std::string> Library::Put(absl::string_view name, const std::string& bytes) {
  const Reference reference{std::string(name), Sha256(bytes)};
  if (!reference.is_full()) return absl::InternalError("OpenSSL has no SHA-256");
  if (absl::Status status = folder_.Write(reference, bytes); !status.ok()) return status;
  return reference.Text();
}

absl::StatusOr<std::vector<std::string>> Library::List(absl::string_view prefix) const {
  return folder_.List(prefix, kMostListed);
}

}  // namespace quantd::stored_parameters
