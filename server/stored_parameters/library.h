// Stored sets of parameters: finds them by reference, stores them and lists them.
//
//   auto set = library.FindInMemory(reference, "parameters");
//   if (set.ok() && *set == nullptr) set = library.Find(reference, "parameters");  // may wait
#ifndef QUANTD_SERVER_STORED_PARAMETERS_LIBRARY_H_
#define QUANTD_SERVER_STORED_PARAMETERS_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/stored_parameters/cache.h"
#include "server/stored_parameters/folder.h"

namespace quantd::stored_parameters {

// Thread-safe.
class Library {
 public:
  static constexpr size_t kMostListed = 4096;

  // Bytes of sets in memory: of those that are kept, and of all.
  struct Limits {
    uint64_t kept_bytes = 64 << 20;
    uint64_t most_bytes = 128 << 20;
  };

  // Returns the errors of Folder::Open.
  static absl::StatusOr<std::unique_ptr<Library>> Open(const std::string& folder,
                                                       const Limits& limits);

  // The set of a full reference if it is in memory; otherwise null, and Find must search. Returns
  // INVALID_ARGUMENT for `field` if the text is not a reference.
  absl::StatusOr<SetPointer> FindInMemory(absl::string_view reference, absl::string_view field);

  // Never null. NOT_FOUND for `field`: there is no such set, or its file does not match its name.
  // INVALID_ARGUMENT for `field`: not a reference, or a name that several sets have. UNAVAILABLE:
  // calls are using as many other sets as memory allows. RESOURCE_EXHAUSTED: the set is too large
  // for the memory of sets. Blocks.
  absl::StatusOr<SetPointer> Find(absl::string_view reference, absl::string_view field);

  // Stores the encoding of a set (canonical.h) and returns its full reference. Returns the errors
  // of Folder::Write. Blocks. REQUIRES: IsName(name).
  absl::StatusOr<std::string> Put(absl::string_view name, const std::string& bytes);

  // The first kMostListed references that begin with `prefix`, in byte order. Files that are not
  // sets are left out: the first 16 MiB of files are checked; the others are taken for sets by
  // their names and sizes. Blocks.
  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix);

  // What a thread waits for on the disk (the latest, if there are several): the path of a file, or
  // of the folder where it searches; empty: no thread waits.
  std::string waits_for() const;

  const Cache& cache() const { return cache_; }

 private:
  Library(Folder folder, const Limits& limits)
      : folder_(std::move(folder)), cache_(limits.kept_bytes, limits.most_bytes) {}
  absl::StatusOr<SetPointer> FindNamed(const std::string& name, absl::string_view field);
  absl::StatusOr<SetPointer> Load(const Reference& reference);
  // REQUIRES: loading_ is held.
  absl::StatusOr<std::unique_ptr<wire::StoredSet>> Read(const Reference& reference);
  bool IsSet(const std::string& text, uint64_t& left);

  // While an object of this type lives, waits_for() is `path`.
  class AtDisk {
   public:
    AtDisk(const Library& library, std::string path) : library_(library) {
      library.SetWaitsFor(std::move(path));
    }
    ~AtDisk() { library_.SetWaitsFor(""); }
    AtDisk(const AtDisk&) = delete;
    AtDisk& operator=(const AtDisk&) = delete;

   private:
    const Library& library_;
  };
  void SetWaitsFor(std::string path) const;
  std::string PathOf(const Reference& reference) const;

  const Folder folder_;
  Cache cache_;
  std::mutex loading_;  // only one file at a time is in memory in addition to the sets
  mutable std::mutex waits_for_mutex_;
  mutable std::string waits_for_;
};

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_LIBRARY_H_
