// quantctl verify: tests a server with the conformance kit.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "commands/commands.h"
#include "commands/progress.h"
#include "engine/errors.h"
#include "files/printable.h"
#include "files/signals.h"
#include "kit/judge.h"
#include "kit/read_kit.h"
#include "quantd/client/client.h"
#include "re2/re2.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

struct RuleCount {
  int64_t passed = 0, failed = 0, not_supported = 0;
  bool open = false;
  std::string first;                       // the first case that failed, and why
  std::map<std::string, int64_t> answers;  // to an open question
};
using Counts = std::map<std::string, RuleCount>;

absl::Status WrongUse(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(text, "; see quantctl verify --help"));
}

absl::StatusOr<std::vector<KitCase>> ChosenCases(const Options& options) {
  const RE2 only(options.only, RE2::Quiet);
  if (!only.ok()) return WrongUse(absl::StrCat("--only: ", only.error()));
  QUANTD_ASSIGN_OR_RETURN(std::vector<KitCase> cases, ReadKit(options.cases));
  const auto unwanted = [&](const KitCase& one) {
    return !RE2::PartialMatch(one.name, only) && !RE2::PartialMatch(one.rule, only);
  };
  cases.erase(std::remove_if(cases.begin(), cases.end(), unwanted), cases.end());
  if (cases.empty()) return WrongUse(absl::StrCat("--only=", options.only, " matches no case"));
  return cases;
}

// The calls are sequential, because only the answers matter here.
absl::Status AskAll(const std::vector<KitCase>& cases, const Options& options,
                    const std::string& address, client::Client& server, Counts* counts) {
  Progress progress(!options.quiet && !options.json, cases.size());
  for (const KitCase& one : cases) {
    progress.SetLabel(one.rule);
    if (!one.request.has_value()) {
      ++(*counts)[one.rule].not_supported;
      progress.Add(1);
      continue;
    }
    const absl::StatusOr<KitAnswer> found = Ask(one, server);
    if (!found.ok()) {
      return OperationError(ServerError(found.status(), address), "verify", one.name);
    }
    const KitOutcome outcome = Judge(one, *found, options.exact);
    RuleCount& count = (*counts)[one.rule];
    count.open = one.open && !options.exact;
    if (count.open) {
      ++count.answers[outcome.answer.empty() ? "another" : outcome.answer];
    } else if (outcome.passed) {
      ++count.passed;
    } else if (count.failed++ == 0) {
      count.first = absl::StrCat(one.name, ": ", outcome.why);
    }
    progress.Add(1);
  }
  return absl::OkStatus();
}

std::string AnswersText(const RuleCount& count) {
  return absl::StrJoin(count.answers, ", ", [](std::string* text, const auto& answer) {
    absl::StrAppend(text, answer.first, " ", answer.second);
  });
}

void PrintTable(const Counts& counts) {
  absl::PrintF("%-38s %7s %7s %11s  first failed case\n", "rule", "passed", "failed",
               "unsupported");
  for (const auto& [rule, count] : counts) {
    if (count.open) continue;
    absl::PrintF("%-38s %7d %7d %11d%s%s\n", rule, count.passed, count.failed, count.not_supported,
                 count.first.empty() ? "" : "  ", Printable(count.first));
  }
  absl::PrintF("\n%-48s answers\n", "left open by the specification");
  for (const auto& [rule, count] : counts) {
    if (count.open) absl::PrintF("%-48s %s\n", rule, AnswersText(count));
  }
}

Json JsonOf(const Counts& counts, const std::string& address, const Counts::mapped_type& sum,
            double seconds) {
  Json rules = Json::array();
  for (const auto& [rule, count] : counts) {
    Json one = {{"rule", rule}, {"open", count.open}};
    if (count.open) {
      one["answers"] = count.answers;
    } else {
      one["passed"] = count.passed;
      one["failed"] = count.failed;
      one["not_supported"] = count.not_supported;
      one["first"] = count.first;
    }
    rules.push_back(std::move(one));
  }
  return {{"address", address},   {"passed", sum.passed},
          {"failed", sum.failed}, {"not_supported", sum.not_supported},
          {"seconds", seconds},   {"rules", std::move(rules)}};
}

}  // namespace

absl::Status RunVerify(const Options& options) {
  if (options.cases.empty()) {
    return WrongUse("--cases is missing: the folder of the kit's cases");
  }
  QUANTD_ASSIGN_OR_RETURN(const std::vector<KitCase> cases, ChosenCases(options));
  QUANTD_ASSIGN_OR_RETURN(const std::string address, AddressOf(options));
  client::Client server(address, ClientOptionsOf(options, absl::Seconds(options.timeout)));
  if (!server.status().ok()) return OptionsError(server.status());
  Counts counts;
  const absl::Time start = absl::Now();
  QUANTD_RETURN_IF_ERROR(AskAll(cases, options, address, server, &counts));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  RuleCount sum;
  int64_t open = 0;
  for (const auto& [rule, count] : counts) {
    sum.passed += count.passed;
    sum.failed += count.failed;
    sum.not_supported += count.not_supported;
    for (const auto& [answer, number] : count.answers) open += number;
  }
  if (options.json) {
    std::fputs(Dump(JsonOf(counts, address, sum, seconds)).c_str(), stdout);
  } else if (!options.quiet) {
    PrintTable(counts);
    absl::PrintF(
        "\n%s: %d passed, %d failed, %d open questions answered, %d unsupported, in %.1f s\n",
        Printable(address), sum.passed, sum.failed, open, sum.not_supported, seconds);
  }
  if (sum.failed == 0) return absl::OkStatus();
  std::fflush(stdout);
  return OperationError(absl::FailedPreconditionError(absl::StrCat(
                            sum.failed, " of ", sum.passed + sum.failed, " cases failed")),
                        "verify", address);
}

}  // namespace quantd::cli
