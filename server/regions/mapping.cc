#include "server/regions/mapping.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace quantd::regions {

absl::StatusOr<std::shared_ptr<Mapping>> Mapping::Map(int file, const struct stat& status,
                                                      bool writable) {
  const auto size = static_cast<size_t>(status.st_size);
  void* const data =
      mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("its ", size, " bytes can't be mapped: ", std::strerror(errno)));
  }
  const int slot = ProtectFromSigbus(static_cast<uint8_t*>(data), size);
  if (slot < 0) {
    munmap(data, size);
    return absl::ResourceExhaustedError(absl::StrCat("all ", kMaxGuarded, " mappings are in use"));
  }
  return std::shared_ptr<Mapping>(new Mapping(static_cast<uint8_t*>(data), status, writable, slot));
}

Mapping::Mapping(uint8_t* data, const struct stat& status, bool writable, int slot)
    : data_(data),
      size_(static_cast<size_t>(status.st_size)),
      identity_{status.st_dev, status.st_ino},
      writable_(writable),
      slot_(slot),
      prepared_(std::make_unique<std::atomic<bool>[]>(size_ / kPiece + 1)) {}

Mapping::~Mapping() {
  Unguard(slot_);
  munmap(data_, size_);
}

void Mapping::Prepare(size_t offset, size_t size, absl::FunctionRef<bool()> stop) {
  for (size_t piece = offset / kPiece; piece * kPiece < offset + size; ++piece) {
    if (prepared_[piece].exchange(true, std::memory_order_relaxed)) continue;
    if (stop()) return;
    // Before Linux 5.14 this advice does not exist, and pages are mapped one by one. The guard
    // handles pages that the file has lost.
    const size_t begin = piece * kPiece;
    madvise(data_ + begin, std::min(kPiece, size_ - begin), MADV_POPULATE_READ);
  }
}

}  // namespace quantd::regions
