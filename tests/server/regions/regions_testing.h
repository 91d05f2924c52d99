// A directory in shared memory, removed with the test, and files in it.
#ifndef QUANTD_TESTS_SERVER_REGIONS_REGIONS_TESTING_H_
#define QUANTD_TESTS_SERVER_REGIONS_REGIONS_TESTING_H_

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace quantd::regions {

class Folder {
 public:
  Folder() {
    char path[] = "/dev/shm/regions_test_XXXXXX";
    EXPECT_NE(mkdtemp(path), nullptr);
    path_ = path;
    descriptor_ = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  ~Folder() {
    close(descriptor_);
    std::filesystem::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  bool Has(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(*this / name));
  }

  // A file of `size` bytes, all of them `fill`. Returns the descriptor; the caller closes it.
  int Create(const std::string& name, size_t size, char fill = 0, mode_t mode = 0600) const {
    const int file = open((*this / name).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    EXPECT_GE(file, 0) << name;
    const std::string bytes(size, fill);
    EXPECT_EQ(write(file, bytes.data(), size), static_cast<ssize_t>(size));
    return file;
  }
  void Make(const std::string& name, size_t size, char fill = 0) const {
    close(Create(name, size, fill));
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace quantd::regions

#endif  // QUANTD_TESTS_SERVER_REGIONS_REGIONS_TESTING_H_
