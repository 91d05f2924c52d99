#include "server/stored_parameters/library.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/errors/reason.h"
#include "server/log/log.h"
#include "server/stored_parameters/canonical.h"
#include "server/stored_parameters/hash.h"

namespace quantd::stored_parameters {
namespace {

// The bytes of files that a list checks: the largest size of one set.
constexpr uint64_t kMostLookedInto = kMaxSetBytes;

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
    return FindNamed(parsed->name, field);
  }
  if (SetPointer set = cache_.Find(parsed->Text()); set != nullptr) return set;
  absl::StatusOr<SetPointer> set = Load(*parsed);
  if (absl::IsNotFound(set.status())) return NotFound(field, std::string(set.status().message()));
  return set;
}

// The only set with a name. Files that do not match their names do not count.
absl::StatusOr<SetPointer> Library::FindNamed(const std::string& name, absl::string_view field) {
  absl::StatusOr<std::vector<Reference>> named = [&] {
    const AtDisk at_disk(*this, folder_.path());
    return folder_.Named(name, kMostListed);
  }();
  if (!named.ok()) return named.status();
  std::optional<Reference> only;
  SetPointer found;
  for (const Reference& reference : *named) {
    found = nullptr;  // so that only one set is in memory at a time
    absl::StatusOr<SetPointer> set = Load(reference);
    if (absl::IsNotFound(set.status())) continue;
    if (!set.ok()) return set;
    if (only.has_value()) {
      return FieldError(field, absl::StrCat(field, " is ", name,
                                            ", a name that several sets have: ", only->Text(), ", ",
                                            reference.Text()));
    }
    only = reference;
    found = *std::move(set);
  }
  if (found != nullptr) return found;
  if (only.has_value()) return Find(only->Text(), field);
  return NotFound(field, absl::StrCat("no stored parameters have the name ", name));
}

absl::StatusOr<SetPointer> Library::Load(const Reference& reference) {
  const std::lock_guard lock(loading_);
  if (SetPointer set = cache_.Find(reference.Text()); set != nullptr) return set;
  absl::StatusOr<std::unique_ptr<wire::StoredSet>> set = Read(reference);
  if (!set.ok()) return set.status();
  return cache_.Add(*std::move(set));
}

absl::StatusOr<std::unique_ptr<wire::StoredSet>> Library::Read(const Reference& reference) {
  const AtDisk at_disk(*this, PathOf(reference));
  const uint64_t size = folder_.Size(reference);
  const bool may_be_set = size <= kMaxSetBytes;  // otherwise the folder reports the error
  if (may_be_set && size + DecodeBytes(size) > cache_.most_bytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(reference.Text(), " takes ", size + DecodeBytes(size),
                     " bytes to read, but stored parameters may use ", cache_.most_bytes(),
                     " bytes of this server's memory"));
  }
  if (may_be_set && !cache_.MakeRoom(size, DecodeBytes(size))) {
    return errors::WithReason(
        absl::UnavailableError(
            "calls are using too many other sets of parameters; try again later"),
        "PARAMETERS_BUSY");
  }
  absl::StatusOr<std::string> bytes = folder_.Read(reference, may_be_set ? size : 0);
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
  return set;
}

absl::StatusOr<std::string> Library::Put(absl::string_view name, const std::string& bytes) {
  const Reference reference{std::string(name), Sha256(bytes)};
  if (!reference.is_full()) return absl::InternalError("OpenSSL has no SHA-256");
  const AtDisk at_disk(*this, PathOf(reference));
  if (absl::Status status = folder_.Write(reference, bytes); !status.ok()) return status;
  return reference.Text();
}

absl::StatusOr<std::vector<std::string>> Library::List(absl::string_view prefix) {
  absl::StatusOr<std::vector<std::string>> listed = [&] {
    const AtDisk at_disk(*this, folder_.path());
    return folder_.List(prefix, kMostListed);
  }();
  if (!listed.ok()) return listed;
  uint64_t left = kMostLookedInto;
  std::erase_if(*listed, [&](const std::string& text) { return !IsSet(text, left); });
  return listed;
}

// Whether a reference is that of a set, as far as that can be checked by reading `left` more bytes.
bool Library::IsSet(const std::string& text, uint64_t& left) {
  if (cache_.Find(text) != nullptr) return true;
  const absl::StatusOr<Reference> reference = ParseReference(text, "");
  const AtDisk at_disk(*this, PathOf(*reference));
  const uint64_t size = folder_.Size(*reference);
  const uint64_t cost = std::max<uint64_t>(size, 4096);
  if (size <= kMaxSetBytes && cost > left) return size != 0;
  if (size <= kMaxSetBytes) left -= cost;
  const std::lock_guard lock(loading_);
  return !absl::IsNotFound(Read(*reference).status());
}

std::string Library::waits_for() const {
  const std::lock_guard lock(waits_for_mutex_);
  return waits_for_;
}

void Library::SetWaitsFor(std::string path) const {
  const std::lock_guard lock(waits_for_mutex_);
  waits_for_ = std::move(path);
}

std::string Library::PathOf(const Reference& reference) const {
  return absl::StrCat(folder_.path(), "/", reference.FileName());
}

}  // namespace quantd::stored_parameters
