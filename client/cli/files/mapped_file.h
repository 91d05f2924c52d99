// Files mapped into memory: inputs, and outputs while they are written.
#ifndef QUANTD_CLI_FILES_MAPPED_FILE_H_
#define QUANTD_CLI_FILES_MAPPED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace quantd::cli {

// A file mapped into memory. Only touched pages use memory, and the kernel may reclaim them.
//
// Read-only and thread-safe. If the file is truncated while it is open, reading the missing part
// ends the program (signals.h).
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

// OK if `path` may be written: it does not exist and its folder is writable, or it is a regular
// file and `force` is set. Otherwise ALREADY_EXISTS, INVALID_ARGUMENT or the system's error, with
// the path. CheckApart (file_names.h) checks that it is neither an input nor another output.
absl::Status CheckMayWrite(const std::string& path, bool force);

// A file that is written completely or not at all: it is written under another name in the same
// folder, flushed to the disk, and renamed when it is complete.
//
//   OutputFile file;
//   file.Create("out.npy", size, rules);  ... file.bytes() ...;  file.Sync();  file.Publish();
//
// For one thread; different parts of bytes() may be written by different threads.
class OutputFile {
 public:
  OutputFile() = default;
  // Removes the file if it was not published.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Allocates `size` bytes on the disk, all zero. Returns the errors of CheckMayWrite and of the
  // file system, with the path.
  absl::Status Create(const std::string& path, uint64_t size, bool force);
  // Allocates `size` bytes in the folder of `path` for temporary data, in a file without a name.
  absl::Status CreateNameless(const std::string& path, uint64_t size);
  absl::Span<uint8_t> bytes() { return bytes_; }
  // Waits until all bytes are on the disk. After this, bytes() is empty.
  absl::Status Sync();
  // Renames the file to its final name. REQUIRES: Sync() returned OK.
  absl::Status Publish();
  // Removes a published file again, unless it may have replaced another one.
  void Withdraw();

 private:
  int OpenTemporary(const std::string& folder);
  absl::Status Allocate(uint64_t size);

  std::string path_, temporary_;
  bool replace_ = false;
  int descriptor_ = -1;
  absl::Span<uint8_t> bytes_;
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_MAPPED_FILE_H_
