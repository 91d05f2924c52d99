// A file that is either written whole or not at all: written under another name beside its place,
// and renamed when it is complete.
//
//   OutputFile file;  file.Create("out.npy", size);  ... file.bytes() ...;  file.Commit();
//
// Not thread safe; distinct parts of bytes() may be written from distinct threads.
#ifndef QUANTD_CLI_OUTPUT_FILE_H_
#define QUANTD_CLI_OUTPUT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace quantd::cli {

class OutputFile {
 public:
  OutputFile() = default;
  // Removes what was not committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Takes `size` bytes on the disk, all zero. The errors of the file system, with the path.
  absl::Status Create(const std::string& path, uint64_t size);
  absl::Span<uint8_t> bytes() { return bytes_; }
  // Puts the file in its place, over one that may be there.
  absl::Status Commit();

 private:
  void Unmap();
  std::string path_, temporary_;
  absl::Span<uint8_t> bytes_;
};

// From now on SIGINT and SIGTERM remove the files that are not complete, and end the program.
void RemoveIncompleteFilesOnSignal();

}  // namespace quantd::cli

#endif  // QUANTD_CLI_OUTPUT_FILE_H_
