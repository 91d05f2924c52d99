#include "files/file_names.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

// Device and inode number of a file; for a file that does not exist those of its folder, and its
// name.
using Identity = std::tuple<dev_t, ino_t, std::string>;

Identity IdentityOf(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) return {status.st_dev, status.st_ino, ""};
  if (stat(FolderOf(path).c_str(), &status) != 0) return {0, 0, path};
  return {status.st_dev, status.st_ino, NameOf(path)};
}

}  // namespace

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

std::string NameOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

void SyncFolder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

std::string ScratchPath() {
  const char* folder = std::getenv("TMPDIR");
  return absl::StrCat(folder == nullptr || *folder == '\0' ? "/tmp" : folder, "/scratch");
}

std::string UniqueName() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) {  // the kernel does not have this call
    bits = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return absl::StrCat(absl::Hex(bits, absl::kZeroPad16));
}

absl::Status CheckApart(absl::Span<const NamedFile> inputs, absl::Span<const NamedFile> outputs) {
  std::vector<Identity> read, written;
  for (const NamedFile& input : inputs) read.push_back(IdentityOf(input.path));
  for (const NamedFile& output : outputs) {
    const Identity identity = IdentityOf(output.path);
    const std::string name = absl::StrCat(output.flag, " ", output.path);
    if (const auto at = std::find(read.begin(), read.end(), identity); at != read.end()) {
      const NamedFile& input = inputs[static_cast<size_t>(at - read.begin())];
      return absl::InvalidArgumentError(absl::StrCat(name, " is the input ", input.flag, " ",
                                                     input.path, "; write to another file"));
    }
    if (const auto at = std::find(written.begin(), written.end(), identity); at != written.end()) {
      const NamedFile& other = outputs[static_cast<size_t>(at - written.begin())];
      return absl::InvalidArgumentError(
          absl::StrCat(other.flag, " ", other.path, " and ", name, " are the same file; name two"));
    }
    written.push_back(identity);
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
