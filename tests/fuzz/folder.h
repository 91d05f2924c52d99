// A folder that is removed when the process ends.
#ifndef QUANTD_TESTS_FUZZ_FOLDER_H_
#define QUANTD_TESTS_FUZZ_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "fuzzing.h"

namespace quantd::fuzz {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "fuzzer.XXXXXX").string();
    Require(mkdtemp(name.data()) != nullptr, "there is a folder for files");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string Write(absl::string_view name, const std::string& bytes) const {
    const std::string path = absl::StrCat(path_, "/", name);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << bytes;
    file.close();
    Require(file.good(), "a file can be written");
    return path;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_FOLDER_H_
