// Files and folders of models: their state and bytes, which are read in pieces, and outputs while
// they are written: first NAME.tmp in the work folder, then NAME.
//
// Files are read, not mapped, so that a file that is truncated meanwhile causes an error, not a
// signal.
#ifndef QUANTD_CHECKPOINTS_FILES_H_
#define QUANTD_CHECKPOINTS_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace quantd::checkpoints {

// ---- Input --------------------------------------------------------------------------------------

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

// ---- Output -------------------------------------------------------------------------------------

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

// ---- Folders ------------------------------------------------------------------------------------

// Whether `path` is `place`, or is or would be inside of it, through any links, mounts and names.
bool LiesIn(const std::string& path, const std::string& place);

// All files of a folder and its subfolders except .git, by name ("sub/file"). Links are followed to
// files in the folder, or in a blobs/ beside it or a folder around it, as in the Hub's cache. Links
// to folders in it are left out, because these are listed under their own names. Returns
// INVALID_ARGUMENT, with the path, for other links, and for what is no file or folder.
absl::StatusOr<std::vector<InputFile>> ListFiles(const std::string& folder);

// Whether a file's name is that of weights in another format: .bin .pt .pth .gguf .h5 .msgpack.
bool HoldsWeights(absl::string_view name);

// Creates the missing folders above `path`.
absl::Status MakeFoldersFor(const std::string& path);
// Removes a file, or a folder with all of its contents; links are removed, not followed.
absl::Status RemoveAll(const std::string& path);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_FILES_H_
