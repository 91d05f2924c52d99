// Asks a server a case, and compares.
#ifndef QUANTD_CLI_KIT_JUDGE_H_
#define QUANTD_CLI_KIT_JUDGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "kit/case.h"
#include "quantd/client/client.h"

namespace quantd::cli {

// What a server answers. INVALID_ARGUMENT of the server is a refusal, and an answer; any other
// failure of the call is the error.
absl::StatusOr<KitAnswer> Ask(const KitCase& kit_case, client::Client& server);

// What differs, in words, with the first element that does; empty when the two are the same. NaNs
// are all alike, but for those of FLOAT8 with `exact_nan`.
std::string Difference(const KitAnswer& found, const KitAnswer& wanted, bool exact_nan);

struct KitOutcome {
  bool passed = true;
  std::string why;     // it failed
  std::string answer;  // which of the known answers to an open question; empty: none of them
};
// exact: of an open question the oracle's answer and no other; NaNs of FLOAT8 bit for bit.
KitOutcome Judge(const KitCase& kit_case, const KitAnswer& found, bool exact);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_KIT_JUDGE_H_
