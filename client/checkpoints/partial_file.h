// An output file while it is written: first NAME.tmp in the work folder, then NAME.
#ifndef QUANTD_CHECKPOINTS_PARTIAL_FILE_H_
#define QUANTD_CHECKPOINTS_PARTIAL_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "checkpoints/input_file.h"

namespace quantd::checkpoints {

// Different bytes may be written by different threads.
class PartialFile {
 public:
  // Creates `temporary`, or truncates it. A signal that quantctl handles removes it.
  // `mode`: its permissions; 0: as the process's umask says. ALREADY_EXISTS: another process is
  // writing it.
  static absl::StatusOr<std::unique_ptr<PartialFile>> Create(const std::string& temporary,
                                                             const std::string& path,
                                                             uint32_t mode = 0);
  // Removes the file if it was not finished.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  absl::Status Write(uint64_t offset, absl::Span<const uint8_t> bytes);
  absl::Status Write(uint64_t offset, absl::string_view text);
  // Copies bytes of another file, inside of the kernel if the system can.
  absl::Status Copy(const OpenFile& from, uint64_t from_offset, uint64_t offset, uint64_t bytes);
  // Sets the file's size, writes it to the disk, and renames it to its final name.
  absl::Status Finish(uint64_t size);

 private:
  PartialFile(std::string temporary, std::string path)
      : temporary_(std::move(temporary)), path_(std::move(path)) {}
  absl::Status Cannot(int error) const;

  const std::string temporary_, path_;
  uint32_t mode_ = 0;
  int descriptor_ = -1;
  bool finished_ = false;
};

// Writes a small file as a whole.
absl::Status WriteFile(const std::string& temporary, const std::string& path,
                       absl::string_view text, uint32_t mode = 0);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_PARTIAL_FILE_H_
