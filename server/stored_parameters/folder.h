// The directory of stored sets: reading, writing and listing its files. Other processes, and other
// replicas, do the same at the same time; nothing here locks, and nothing needs to: a file's name
// says what is in it, and it gets its name when it is whole.
//
// It may also be a volume that is mounted read-only, such as a ConfigMap, whose files are links to
// others beneath it.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_FOLDER_H_
#define QUANTD_SERVER_STORED_PARAMETERS_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/stored_parameters/reference.h"

namespace quantd::stored_parameters {

// All of it blocks, for as long as a disk or a server of files may take. Safe from any thread.
class Folder {
 public:
  // INVALID_ARGUMENT, with the path, when it is no directory. Removes what a server that was killed
  // has left of a set that it was storing.
  static absl::StatusOr<Folder> Open(std::string path);

  // The bytes of a file, whose hash is that of its name. NOT_FOUND: there is none, or what is there
  // is not it: another hash, larger than kMaxSetBytes, no regular file, outside of the directory,
  // or this process may not read it. What is wrong with a file goes into the log. UNAVAILABLE: what
  // may pass, as no free descriptor, or more than `most` bytes. REQUIRES: is_full().
  absl::StatusOr<std::string> Read(const Reference& reference, uint64_t most = UINT64_MAX) const;
  // Bytes of that file, before it is read; 0: there is none.
  uint64_t Size(const Reference& reference) const;

  // Stores bytes whose hash is that of the reference; does nothing when they are there. It is on
  // disk when this returns, under its name or not at all. FAILED_PRECONDITION: this process may not
  // write there. RESOURCE_EXHAUSTED: the volume is full.
  absl::Status Write(const Reference& reference, const std::string& bytes) const;

  // The first `most` references that begin with `prefix`, in the order of their bytes. By the names
  // of the files: what is in them is not looked at.
  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix, size_t most) const;
  // Sets of this name, up to `most` of them.
  absl::StatusOr<std::vector<Reference>> Named(absl::string_view name, size_t most) const;

  const std::string& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_FOLDER_H_
