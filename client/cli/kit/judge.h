// Sends a case to a server, and compares the results.
#ifndef QUANTD_CLI_KIT_JUDGE_H_
#define QUANTD_CLI_KIT_JUDGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "kit/case.h"
#include "quantd/client/client.h"

namespace quantd::cli {

// The server's answer. INVALID_ARGUMENT from the server is a refusal, which is an answer; any other
// failure of the call is an error.
absl::StatusOr<KitAnswer> Ask(const KitCase& kit_case, client::Client& server);

// Describes the difference, with the first element that differs; empty if there is none. All NaNs
// are equal, except for those of FLOAT8 with `exact_nan`.
std::string Difference(const KitAnswer& found, const KitAnswer& wanted, bool exact_nan);

struct KitOutcome {
  bool passed = true;
  std::string why;     // why it failed
  std::string answer;  // the known answer to an open question that was given; empty: none of them
};
// exact: only the oracle's answer to an open question passes; NaNs of FLOAT8 are compared bit for
// bit.
KitOutcome Judge(const KitCase& kit_case, const KitAnswer& found, bool exact);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_KIT_JUDGE_H_
