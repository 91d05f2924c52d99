// The directory of stored sets: reads, writes and lists its files. Other processes and replicas do
// the same at the same time without locks. Locks are not needed: a file's name says what is in it,
// and a file gets its name when it is complete.
//
// The directory may be a volume that is mounted read-only, such as a ConfigMap, whose files are
// links to files beneath it.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_FOLDER_H_
#define QUANTD_SERVER_STORED_PARAMETERS_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/stored_parameters/reference.h"

namespace quantd::stored_parameters {

// All functions block for as long as a disk or a file server takes. Thread-safe.
class Folder {
 public:
  // Returns INVALID_ARGUMENT, with the path, if it is not a directory. Removes partly written sets
  // of a server that was killed.
  static absl::StatusOr<Folder> Open(std::string path);

  // The bytes of the file, whose hash matches its name. NOT_FOUND: there is no such file, or it is
  // not valid: another hash, larger than kMaxSetBytes, not a regular file, outside of the
  // directory, or not readable by this process. The log says what is wrong with a file.
  // UNAVAILABLE: a passing problem, such as no free descriptor, or more than `most` bytes.
  // REQUIRES: is_full().
  absl::StatusOr<std::string> Read(const Reference& reference, uint64_t most = UINT64_MAX) const;
  // The file's size, before it is read; 0: there is no such file.
  uint64_t Size(const Reference& reference) const;

  // Stores bytes whose hash is that of the reference; does nothing if they exist already. When this
  // returns, the file is on disk under its name, or does not exist. FAILED_PRECONDITION: this
  // process may not write there. RESOURCE_EXHAUSTED: the volume is full.
  absl::Status Write(const Reference& reference, const std::string& bytes) const;

  // The first `most` references that begin with `prefix`, in byte order. Uses the names of the
  // files and does not read their contents.
  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix, size_t most) const;
  // Sets with this name, at most `most`.
  absl::StatusOr<std::vector<Reference>> Named(absl::string_view name, size_t most) const;

  const std::string& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_FOLDER_H_
