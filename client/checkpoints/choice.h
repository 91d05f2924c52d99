// The tensors that a user selected by name: --only and --skip.
#ifndef QUANTD_CHECKPOINTS_CHOICE_H_
#define QUANTD_CHECKPOINTS_CHOICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quantd::checkpoints {

// Immutable, thread-safe.
class Choice {
 public:
  // Regular expressions (RE2); empty: no restriction. Returns INVALID_ARGUMENT if one is invalid.
  static absl::StatusOr<Choice> Of(const std::string& only, const std::string& skip);
  // Why a tensor is not selected; empty if it is.
  std::string SkipReason(absl::string_view name) const;
  bool has_only() const;

 private:
  struct Patterns;
  std::shared_ptr<const Patterns> patterns_;
};

// Whether a name is that of a weight that is quantized by default: it ends in .weight, and does not
// belong to an embedding, a norm, a router, a gate or the head.
bool IsWeightOfLinear(absl::string_view name);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_CHOICE_H_
