#include "server/regions/regions.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/regions/directory.h"
#include "server/scheduling/places.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace quantd::regions {
namespace {

// Identifies a file, whatever its name.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const Identity&) const = default;
};

constexpr uint64_t kSweepsALook = 60;
constexpr uint64_t kWorthPreparing = 64 << 10;

absl::Status RegionError(absl::string_view field, absl::string_view name, absl::string_view what,
                         absl::StatusCode code) {
  return FieldError(absl::StrCat(field, ".region"),
                    absl::StrCat(field, ".region '", name, "' ", what), code);
}

absl::Status OpenError(absl::string_view field, absl::string_view name, int error) {
  switch (error) {
    case ENOENT:
      return RegionError(field, name, "is not in --shared_memory_dir", absl::StatusCode::kNotFound);
    case ELOOP:
    case EXDEV:
    case ENXIO:
    case ENODEV:
      return RegionError(field, name, "is not a regular file", absl::StatusCode::kNotFound);
    default:
      const bool denied = error == EACCES || error == EPERM || error == EROFS;
      const bool exhausted = error == EMFILE || error == ENFILE || error == ENOMEM;
      return RegionError(field, name, absl::StrCat("can't be opened: ", std::strerror(error)),
                         denied      ? absl::StatusCode::kPermissionDenied
                         : exhausted ? absl::StatusCode::kResourceExhausted
                                     : absl::StatusCode::kFailedPrecondition);
  }
}

absl::Status CheckSpan(absl::string_view field, const std::string& name, const struct stat& status,
                       uint64_t offset, uint64_t size) {
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (offset > bytes || size > bytes - offset) {
    return FieldError(field, absl::StrCat(field, " is ", size, " bytes from offset ", offset,
                                          ", region '", name, "' has ", bytes, " bytes"));
  }
  return absl::OkStatus();
}

uint64_t AllocatedBytes(const struct stat& status) {
  return std::min(static_cast<uint64_t>(status.st_blocks) * 512,
                  static_cast<uint64_t>(status.st_size));
}

}  // namespace

// A file of a client, mapped as a whole, shared and guarded.
class Mapping {
 public:
  // `file` is open for reading, and for writing if `writable`; the descriptor is not needed
  // afterwards. Returns RESOURCE_EXHAUSTED if the system or the guard has no room. REQUIRES: size >
  // 0.
  static absl::StatusOr<std::shared_ptr<Mapping>> Map(int file, const struct stat& status,
                                                      bool writable);
  ~Mapping() {
    Unguard(slot_);
    munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool writable() const { return writable_; }
  const Identity& identity() const { return identity_; }
  bool damaged() const { return IsDamaged(slot_); }

  // Maps the pages of a span in bulk before it is written for the first time. One by one they cost
  // four to ten times as much, because the kernel maps no neighbours of a page that is written.
  void Prepare(size_t offset, size_t size, absl::FunctionRef<bool()> stop);

  // Whether the mapping still shows the file with this status. An inode number is not reused while
  // its file is mapped, so it is never that of another file.
  bool Shows(const struct stat& status) const {
    return IsOf(status) && size_ == static_cast<uint64_t>(status.st_size) && !damaged();
  }
  bool IsOf(const struct stat& status) const {
    return identity_ == Identity{status.st_dev, status.st_ino};
  }

  // Guarded by the owner: when the mapping was last asked for, and how many bytes of its file the
  // server may have touched first.
  std::chrono::steady_clock::time_point last_use;
  uint64_t holes = 0;
  uint64_t peer = 0;  // who had it mapped

 private:
  static constexpr size_t kPiece = 1 << 20;
  Mapping(uint8_t* data, const struct stat& status, bool writable, int slot)
      : data_(data),
        size_(static_cast<size_t>(status.st_size)),
        identity_{status.st_dev, status.st_ino},
        writable_(writable),
        slot_(slot),
        prepared_(std::make_unique<std::atomic<bool>[]>(size_ / kPiece + 1)) {}

  uint8_t* const data_;
  const size_t size_;
  const Identity identity_;
  const bool writable_;
  const int slot_;
  std::unique_ptr<std::atomic<bool>[]> prepared_;  // one per kPiece bytes
};

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

bool SharedSpan::damaged() const { return mapping_ != nullptr && mapping_->damaged(); }

bool SharedSpan::Overlaps(uint64_t size, const SharedSpan& other) const {
  if (mapping_ == nullptr || other.mapping_ == nullptr) return false;
  if (mapping_->identity() != other.mapping_->identity()) return false;
  const auto mine = static_cast<uint64_t>(bytes_.data() - mapping_->data());
  const auto others = static_cast<uint64_t>(other.bytes_.data() - other.mapping_->data());
  size = std::min<uint64_t>(size, bytes_.size());
  return size > 0 && !other.bytes_.empty() && mine < others + other.bytes_.size() &&
         others < mine + size;
}

void SharedSpan::Prepare(uint64_t size, absl::FunctionRef<bool()> stop) const {
  if (size < kWorthPreparing) return;
  mapping_->Prepare(static_cast<size_t>(bytes_.data() - mapping_->data()), size, stop);
}

absl::StatusOr<std::unique_ptr<Regions>> Regions::Open(const std::string& directory,
                                                       const Limits& limits) {
  UniqueFd opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) {
    return absl::InvalidArgumentError(absl::StrCat("--shared_memory_dir: cannot open directory '",
                                                   directory, "': ", std::strerror(errno)));
  }
  InstallSigbusGuard();
  struct statfs system;
  // On hugetlbfs, pages could not be replaced one by one (sigbus_guard.cc).
  if (fstatfs(opened.get(), &system) == 0 && system.f_type == HUGETLBFS_MAGIC) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shared_memory_dir is '", directory, "', on hugetlbfs: use tmpfs"));
  }
  const bool is_tmpfs = fstatfs(opened.get(), &system) == 0 && system.f_type == TMPFS_MAGIC;
  RemoveLeftovers(opened.get());
  return std::unique_ptr<Regions>(new Regions(std::move(opened), is_tmpfs, limits));
}

absl::StatusOr<struct stat> Regions::Look(absl::string_view field, const std::string& name) const {
  struct stat status;
  if (fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return OpenError(field, name, errno);
  }
  if (!S_ISREG(status.st_mode)) return OpenError(field, name, ENODEV);
  return status;
}

uint64_t Regions::HolesOf(const struct stat& status) const {
  return is_tmpfs_ ? static_cast<uint64_t>(status.st_size) - AllocatedBytes(status) : 0;
}

absl::Status Regions::SetHoles(absl::string_view field, const std::string& name, Mapping& mapping,
                               uint64_t holes) {
  const uint64_t left = limits_.holes - (holes_ - mapping.holes);
  const bool another = mapping.holes == 0 && holes > 0;
  if (another && with_holes_ >= limits_.mappings / 2) {
    return RegionError(
        field, name,
        absl::StrCat("has holes, as ", with_holes_, " other regions have; the limit is ",
                     limits_.mappings / 2, ": allocate all of it with posix_fallocate"),
        absl::StatusCode::kFailedPrecondition);
  }
  if (holes > left) {
    return RegionError(
        field, name,
        absl::StrCat("has ", mapping.size(), " bytes, of which ", mapping.size() - holes,
                     " are allocated, and the server allocates at most ", left - mapping.holes,
                     " more: allocate all of them with posix_fallocate"),
        absl::StatusCode::kFailedPrecondition);
  }
  with_holes_ += (holes > 0 ? 1 : 0) - (mapping.holes > 0 ? 1 : 0);
  holes_ += holes - mapping.holes;
  mapping.holes = holes;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Mapping>> Regions::Known(absl::string_view field,
                                                        const std::string& name,
                                                        const struct stat& status, Access access) {
  const std::lock_guard lock(mutex_);
  const auto found = current_.find(name);
  if (found == current_.end() || !found->second->Shows(status)) return nullptr;
  if (access == Access::kWrite && !found->second->writable()) return nullptr;
  Mapping& mapping = *found->second;
  const uint64_t holes = std::max(mapping.holes, HolesOf(status));
  if (absl::Status room = SetHoles(field, name, mapping, holes); !room.ok()) return room;
  found->second->last_use = Clock::now();
  return found->second;
}

absl::StatusOr<SharedSpan> Regions::Find(absl::string_view field, absl::string_view region,
                                         uint64_t offset, uint64_t size, Access access,
                                         uint64_t peer) {
  if (const std::string why = NameError(region); !why.empty()) {
    const std::string path = absl::StrCat(field, ".region");
    return FieldError(path, absl::StrCat(path, " ", why));
  }
  const std::string name(region);
  const absl::StatusOr<struct stat> status = Look(field, name);
  if (!status.ok()) return status.status();
  if (absl::Status good = CheckSpan(field, name, *status, offset, size); !good.ok()) return good;
  SharedSpan span;
  if (size == 0) return span;
  const auto get = [&]() -> absl::StatusOr<std::shared_ptr<Mapping>> {
    absl::StatusOr<std::shared_ptr<Mapping>> known = Known(field, name, *status, access);
    if (!known.ok() || *known != nullptr) return known;
    return Map(field, name, access, offset, size, peer);
  };
  absl::StatusOr<std::shared_ptr<Mapping>> mapping = get();
  if (absl::IsFailedPrecondition(mapping.status()) && hole_bytes() > 0) {
    Unmap();  // files with holes that have been removed
    mapping = get();
  }
  if (!mapping.ok()) return mapping.status();
  span.mapping_ = *std::move(mapping);
  span.bytes_ = {span.mapping_->data() + offset, size};
  return span;
}

absl::StatusOr<std::shared_ptr<Mapping>> Regions::Map(absl::string_view field,
                                                      const std::string& name, Access access,
                                                      uint64_t offset, uint64_t size,
                                                      uint64_t peer) {
  UniqueFd file = OpenBeneath(directory_.get(), name, O_RDWR);
  const bool writable = file.is_open();
  if (!writable && (errno == EACCES || errno == EPERM || errno == EROFS) &&
      access == Access::kRead) {
    file = OpenBeneath(directory_.get(), name, O_RDONLY);
  }
  if (!file.is_open()) return OpenError(field, name, errno);
  // Checked again on the opened file: the name may belong to another file now.
  struct stat status;
  if (fstat(file.get(), &status) != 0) return OpenError(field, name, errno);
  if (!S_ISREG(status.st_mode)) return OpenError(field, name, ENODEV);
  if (absl::Status good = CheckSpan(field, name, status, offset, size); !good.ok()) return good;

  const auto bytes = static_cast<uint64_t>(status.st_size);
  MappingList unmapped;
  const std::lock_guard lock(mutex_);
  // If two threads come at once, the second need not map it again.
  const auto found = current_.find(name);
  if (found != current_.end() && found->second->Shows(status) &&
      (access == Access::kRead || found->second->writable())) {
    return found->second;
  }
  if (!WithinShare(peer) || !MakeRoom(bytes, unmapped)) {
    return RegionError(
        field, name,
        absl::StrCat("has ", bytes, " bytes; ", current_.size() + replaced_.size(), " mappings of ",
                     bytes_, " bytes are in use; the limit is ", limits_.mappings, " mappings of ",
                     limits_.bytes, " bytes, and three quarters of the mappings for one client"),
        absl::StatusCode::kResourceExhausted);
  }
  absl::StatusOr<std::shared_ptr<Mapping>> mapped = Mapping::Map(file.get(), status, writable);
  if (!mapped.ok()) {
    return RegionError(field, name, mapped.status().message(), mapped.status().code());
  }
  // A hole of this file, when it had another size, may be the server's page now.
  const auto before = current_.find(name);
  const bool resized = before != current_.end() && before->second->IsOf(status);
  if (resized) std::swap((*mapped)->holes, before->second->holes);
  const uint64_t holes = std::min((*mapped)->holes, AllocatedBytes(status)) + HolesOf(status);
  if (absl::Status room = SetHoles(field, name, **mapped, holes); !room.ok()) {
    if (resized) std::swap((*mapped)->holes, before->second->holes);
    return room;
  }
  (*mapped)->last_use = Clock::now();
  (*mapped)->peer = peer;
  Replace(name, *mapped);
  return mapped;
}

void Regions::Replace(const std::string& name, std::shared_ptr<Mapping> mapping) {
  bytes_ += mapping->size();
  std::shared_ptr<Mapping>& current = current_[name];
  if (current != nullptr) replaced_.push_back(std::move(current));
  current = std::move(mapping);
}

void Regions::Forget(const Mapping& mapping) {
  bytes_ -= mapping.size();
  holes_ -= mapping.holes;
  with_holes_ -= mapping.holes > 0 ? 1 : 0;
}

bool Regions::WithinShare(uint64_t peer) const {
  uint64_t used = 0, has = 0;
  const auto count = [&](const std::shared_ptr<Mapping>& mapping) {
    if (IsIdle(mapping)) return;
    ++used;
    has += mapping->peer == peer ? 1 : 0;
  };
  for (const auto& named : current_) count(named.second);
  for (const auto& mapping : replaced_) count(mapping);
  const uint64_t free = limits_.mappings - std::min<uint64_t>(used, limits_.mappings);
  return scheduling::WithinShare(limits_.mappings, free, has, 1);
}

bool Regions::MakeRoom(uint64_t size, MappingList& out) {
  if (size > limits_.bytes) return false;
  while (current_.size() + replaced_.size() >= limits_.mappings || bytes_ > limits_.bytes - size) {
    auto oldest = current_.end();
    for (auto it = current_.begin(); it != current_.end(); ++it) {
      if (!IsIdle(it->second) || it->second->holes > 0) continue;
      if (oldest == current_.end() || it->second->last_use < oldest->second->last_use) oldest = it;
    }
    const auto idle = std::find_if(replaced_.begin(), replaced_.end(), IsIdle);
    if (idle != replaced_.end()) {
      out.push_back(std::move(*idle));
      replaced_.erase(idle);
    } else if (oldest != current_.end()) {
      out.push_back(std::move(oldest->second));
      current_.erase(oldest);
    } else {
      return false;
    }
    Forget(*out.back());
  }
  return true;
}

void Regions::Sweep() {
  Unmap();
  if (++sweeps_ % kSweepsALook == 0) RemoveLeftovers(directory_.get());
}

void Regions::Unmap() {
  // Finds out without the mutex which names belong to another file now.
  struct Seen {
    std::string name;
    Identity mapped;
    struct stat status;
  };
  std::vector<Seen> seen;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, mapping] : current_) seen.push_back({name, mapping->identity(), {}});
  }
  for (auto& [name, mapped, status] : seen) {
    if (fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) status = {};
  }
  MappingList unmapped;
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    for (const auto& [name, mapped, status] : seen) {
      const auto found = current_.find(name);
      // It belongs to another file now, which has just been checked.
      if (found == current_.end() || found->second->identity() != mapped) continue;
      const bool idle = IsIdle(found->second) && now - found->second->last_use >= limits_.idle;
      if (found->second->holes > 0 ? found->second->IsOf(status)
                                   : !idle && found->second->Shows(status)) {
        continue;
      }
      replaced_.push_back(std::move(found->second));
      current_.erase(found);
    }
    const auto in_use = std::partition(replaced_.begin(), replaced_.end(), IsIdle);
    std::move(replaced_.begin(), in_use, std::back_inserter(unmapped));
    replaced_.erase(replaced_.begin(), in_use);
    for (const auto& mapping : unmapped) Forget(*mapping);
  }
}

size_t Regions::mappings() const {
  const std::lock_guard lock(mutex_);
  return current_.size() + replaced_.size();
}

uint64_t Regions::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

uint64_t Regions::hole_bytes() const {
  const std::lock_guard lock(mutex_);
  return holes_;
}

}  // namespace quantd::regions
