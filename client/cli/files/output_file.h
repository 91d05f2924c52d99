// A file that is either written whole or not at all: written under another name in the same folder,
// brought to the disk, and renamed when it is complete.
//
//   OutputFile file;
//   file.Create("out.npy", size, rules);  ... file.bytes() ...;  file.Sync();  file.Publish();
//
// Not thread safe; distinct parts of bytes() may be written from distinct threads.
#ifndef QUANTD_CLI_FILES_OUTPUT_FILE_H_
#define QUANTD_CLI_FILES_OUTPUT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace quantd::cli {

// OK when `path` may be written: it does not exist and its folder can be written, or it is a regular
// file and `force` is set. ALREADY_EXISTS, INVALID_ARGUMENT or the system's error, which name it.
// That it is neither an input nor another output is for CheckApart (file_names.h).
absl::Status CheckMayWrite(const std::string& path, bool force);

class OutputFile {
 public:
  OutputFile() = default;
  // Removes what was not published.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Takes `size` bytes on the disk, all zero. The errors of CheckMayWrite and of the file system,
  // with the path.
  absl::Status Create(const std::string& path, uint64_t size, bool force);
  // Takes `size` bytes in the folder of `path` under no name at all, for what is needed in between.
  absl::Status CreateNameless(const std::string& path, uint64_t size);
  absl::Span<uint8_t> bytes() { return bytes_; }
  // Waits until all bytes are on the disk. After this, bytes() is empty.
  absl::Status Sync();
  // Puts the file in its place. REQUIRES: Sync() said OK.
  absl::Status Publish();
  // Takes a published file away again, unless it may have replaced another one.
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
