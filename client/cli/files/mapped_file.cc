#include "files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "files/signals.h"

namespace quantd::cli {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must fail below, not wait for a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a regular file; save the tensor to a .npy or .safetensors"));
  }
  std::shared_ptr<MappedFile> file(new MappedFile());
  if (status.st_size > 0) {
    const auto size = static_cast<size_t>(status.st_size);
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      const int error = errno;
      close(descriptor);
      return absl::ErrnoToStatus(error, absl::StrCat("cannot map ", path));
    }
    file->bytes_ = {static_cast<const uint8_t*>(address), size};
    NameOnSignal(file->bytes_, path);
  }
  close(descriptor);
  return file;
}

namespace {

void Advise(absl::Span<const uint8_t> bytes, int advice) {
  if (bytes.empty()) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t before = begin % page;
  madvise(reinterpret_cast<void*>(begin - before), bytes.size() + before, advice);
}

}  // namespace

void PopulateToRead(absl::Span<const uint8_t> bytes) { Advise(bytes, MADV_POPULATE_READ); }

void PopulateToWrite(absl::Span<uint8_t> bytes) { Advise(bytes, MADV_POPULATE_WRITE); }

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  ForgetMapping(bytes_);
  munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace quantd::cli
