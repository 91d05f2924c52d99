// Which tensors a person chose by name: --only and --skip.
#ifndef QUANTD_CHECKPOINTS_CHOICE_H_
#define QUANTD_CHECKPOINTS_CHOICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::checkpoints {

// Immutable, safe from any thread.
class Choice {
 public:
  // Regular expressions (RE2); empty: none. INVALID_ARGUMENT when one is not one.
  static absl::StatusOr<Choice> Of(const std::string& only, const std::string& skip);
  // Why a tensor is not chosen; empty when it is.
  std::string SkipReason(absl::string_view name) const;
  bool has_only() const;

 private:
  struct Patterns;
  std::shared_ptr<const Patterns> patterns_;
};

// Whether a name is one of the weights that are quantized when nothing else is said: it ends in
// .weight, and is not that of an embedding, a norm, a router, a gate or the head.
bool IsWeightOfLinear(absl::string_view name);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CHOICE_H_
