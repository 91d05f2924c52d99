// OUT.partial: the folder where a conversion is made, which becomes OUT (or holds the file that
// does) when all of it is done.
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
  bool is_folder = false;           // what OUT becomes
  bool resume = false, force = false;
  bool shared = false;  // several processes work here, and none of them finishes
  // What is made of what: a run may go on only with what was made alike.
  Json state;
  // Every file of the output, by its name in the folder.
  absl::flat_hash_set<std::string> names;
};

class Workplace {
 public:
  // Makes OUT.partial, or takes over one. ALREADY_EXISTS or INVALID_ARGUMENT, with nothing touched:
  // OUT exists; OUT.partial does, and neither resume nor force is set; it was begun otherwise, or
  // holds other files; no run has made it; another process works in it; OUT or OUT.partial and
  // the model lie in one another.
  static absl::StatusOr<std::unique_ptr<Workplace>> Open(WorkplaceOptions options);
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const;
  std::string TemporaryOf(const std::string& name) const;
  // Whether files that lie there under their names are finished ones of this conversion.
  bool holds_finished() const { return holds_finished_; }
  // Makes OUT of it.
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
