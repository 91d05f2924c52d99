// A file mapped into memory. Only touched pages use memory, and the kernel may reclaim them.
//
// Read-only and thread-safe. If the file is truncated while it is open, reading the missing part
// ends the program (signals.h).
#ifndef QUANTD_CLI_FILES_MAPPED_FILE_H_
#define QUANTD_CLI_FILES_MAPPED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace quantd::cli {

class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT (a folder, a pipe), with the path in the text.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::Span<const uint8_t> bytes() const { return bytes_; }

 private:
  MappedFile() = default;
  absl::Span<const uint8_t> bytes_;
};

// Maps the pages of bytes of a file now, so that using them later costs no time for that. Does
// nothing where the system cannot.
void PopulateToRead(absl::Span<const uint8_t> bytes);
void PopulateToWrite(absl::Span<uint8_t> bytes);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_MAPPED_FILE_H_
