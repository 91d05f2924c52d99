// A file of the model: its state when the model was opened, and its bytes, read in pieces.
//
// Files are read, not mapped, so that a file that is truncated meanwhile causes an error, not a
// signal.
#ifndef QUANTD_CHECKPOINTS_INPUT_FILE_H_
#define QUANTD_CHECKPOINTS_INPUT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace quantd::checkpoints {

struct InputFile {
  std::string path;
  std::string name;  // relative to the model's folder; for a single file its last part
  uint64_t size = 0;
  uint32_t mode = 0666;     // permissions
  int64_t modified_ns = 0;  // since 1970

  // The current state. Returns NOT_FOUND and the like; INVALID_ARGUMENT if it is not a regular
  // file.
  static absl::StatusOr<InputFile> Of(const std::string& path, const std::string& name);
};

// A file that is open for reading. Thread-safe.
class OpenFile {
 public:
  // Returns FAILED_PRECONDITION if the file has changed since `file` was made.
  static absl::StatusOr<std::unique_ptr<OpenFile>> Open(const InputFile& file);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // Fills `to`. Returns DATA_LOSS if the file is too short.
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const;
  // A hint to read ahead.
  void Expect(uint64_t offset, uint64_t bytes) const;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  absl::Status CutOff() const;

 private:
  OpenFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  const std::string path_;
  const int descriptor_;
};

// A whole text file. Returns INVALID_ARGUMENT if it is longer than `most`.
absl::StatusOr<std::string> ReadText(const InputFile& file, uint64_t most);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_INPUT_FILE_H_
