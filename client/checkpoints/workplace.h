// OUT.partial: the folder in which a conversion is made. When it is complete, it is renamed to OUT
// (or the file in it is).
#ifndef QUANTD_CHECKPOINTS_WORKPLACE_H_
#define QUANTD_CHECKPOINTS_WORKPLACE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "checkpoints/json.h"

namespace quantd::checkpoints {

struct WorkplaceOptions {
  std::string model, out;
  std::vector<std::string> inputs;  // paths of the model's files
  bool is_folder = false;           // whether OUT is a folder
  bool resume = false, force = false;
  bool shared = false;  // several processes work here, and none of them finishes
  // Identifies the conversion: a run may resume only a conversion with the same state.
  Json state;
  // All files of the output, by name in the folder.
  absl::flat_hash_set<std::string> names;
};

class Workplace {
 public:
  // Creates OUT.partial, or takes over an existing one. Returns ALREADY_EXISTS or INVALID_ARGUMENT,
  // and changes nothing, if OUT exists; if OUT.partial exists and neither resume nor force is set;
  // if it belongs to another conversion, contains other files, was not made by a run, or is used by
  // another process; or if OUT or OUT.partial and the model are inside of one another.
  static absl::StatusOr<std::unique_ptr<Workplace>> Open(WorkplaceOptions options);
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const;
  std::string TemporaryOf(const std::string& name) const;
  // Whether the folder has finished files of this conversion.
  bool holds_finished() const { return holds_finished_; }
  // Renames it to OUT.
  absl::Status Publish();
  // Removes it.
  void Withdraw();

 private:
  explicit Workplace(WorkplaceOptions options);
  absl::Status CheckOut() const;
  absl::Status CheckApart(const std::string& place) const;
  absl::Status Begin();
  absl::Status Lock();
  absl::StatusOr<std::optional<Json>> ReadState() const;
  absl::Status CheckOwn() const;
  absl::Status TakeOver();
  absl::Status CheckState(const Json& found) const;
  absl::Status RemoveUnfinished() const;
  absl::Status WriteState() const;
  std::string StateOfOut() const;
  absl::Status Replace(const std::string& from) const;

  const WorkplaceOptions options_;
  const std::string path_;
  int descriptor_ = -1;
  bool holds_finished_ = false;
};

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_WORKPLACE_H_
