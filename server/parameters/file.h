// Descriptors of the directory and of its files.
#ifndef QUANTD_SERVER_PARAMETERS_FILE_H_
#define QUANTD_SERVER_PARAMETERS_FILE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quantd::parameters {

// Owns a descriptor, or none. Closing it leaves errno alone.
class File {
 public:
  explicit File(int number) : number_(number) {}
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  const int number_;
};

// For looking files up in. Not open, with errno, when it is no directory.
File OpenFolder(const std::string& path);

// To be read. Links are followed as long as they stay beneath the directory; nothing that it finds
// makes it wait. Not open, with errno.
File OpenBeneath(const File& directory, const std::string& name);

// Fills `bytes` from the beginning of the file; cuts it when the file has fewer. Returns an errno.
int ReadAll(const File& file, std::string& bytes);
// Returns an errno.
int WriteAll(const File& file, absl::string_view bytes);

// Different in every call and every process that writes to one directory, as good as surely.
std::string UniqueText();

}  // namespace quantd::parameters

#endif  // QUANTD_SERVER_PARAMETERS_FILE_H_
