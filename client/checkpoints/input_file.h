// A file of the model: what it was when the model was opened, and its bytes, read in pieces.
//
// Files are read, not mapped: a file that is cut off meanwhile is then an error, and no signal.
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
  std::string name;  // within the model's folder; of a single file its last part
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970

  // What is there now. NOT_FOUND and the like; INVALID_ARGUMENT for what is not a regular file.
  static absl::StatusOr<InputFile> Of(const std::string& path, const std::string& name);
};

// A file that is open for reading. Safe from any thread.
class OpenFile {
 public:
  // FAILED_PRECONDITION when the file has changed since `file` was made.
  static absl::StatusOr<std::unique_ptr<OpenFile>> Open(const InputFile& file);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // Fills `to`. DATA_LOSS when the file ends before.
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const;
  // Lets the system read ahead. Only a hint.
  void Expect(uint64_t offset, uint64_t bytes) const;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  absl::Status CutOff() const;

 private:
  OpenFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  const std::string path_;
  const int descriptor_;
};

// All of a text file. INVALID_ARGUMENT when it is longer than `most`.
absl::StatusOr<std::string> ReadText(const InputFile& file, uint64_t most);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_INPUT_FILE_H_
