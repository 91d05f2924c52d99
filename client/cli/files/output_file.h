// A file that is written completely or not at all: it is written under another name in the same
// folder, flushed to the disk, and renamed when it is complete.
//
//   OutputFile file;
//   file.Create("out.npy", size, rules);  ... file.bytes() ...;  file.Sync();  file.Publish();
//
// For one thread; different parts of bytes() may be written by different threads.
#ifndef QUANTD_CLI_FILES_OUTPUT_FILE_H_
#define QUANTD_CLI_FILES_OUTPUT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace quantd::cli {

// OK if `path` may be written: it does not exist and its folder is writable, or it is a regular
// file and `force` is set. Otherwise ALREADY_EXISTS, INVALID_ARGUMENT or the system's error, with
// the path. CheckApart (file_names.h) checks that it is neither an input nor another output.
absl::Status CheckMayWrite(const std::string& path, bool force);

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

#endif  // QUANTD_CLI_FILES_OUTPUT_FILE_H_
