#include "report.h"

#include <cstdio>
#include <fstream>
#include <map>
#include <regex>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench.h"

namespace quantd::bench {

std::string SizeText(size_t bytes) {
  if (bytes >= 1 << 20) return absl::StrCat(bytes >> 20, " MiB");
  if (bytes >= 1 << 10) return absl::StrCat(bytes >> 10, " KiB");
  return absl::StrCat(bytes, " B");
}

std::string Count(int number, const std::string& what) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
}

void Report::Begin(const std::string& section, const std::string& title, Columns columns) {
  section_ = section;
  columns_ = columns;
  if (!rows_.contains(section)) rows_[section] = nlohmann::json::array();
  absl::PrintF("\n%s\n\n", title);
  if (columns == Columns::kRates) {
    absl::PrintF(
        "| case | GB/s | beside | GB/s | ratio | quartiles |\n|---|---|---|---|---|---|\n");
  } else if (columns == Columns::kNotes) {
    absl::PrintF("| when | |\n|---|---|\n");
  } else {
    absl::PrintF(
        "| case | side | /s | beside | /s | rate | quartiles | p50 us | ratio | p99 us | ratio | "
        "CPU us | ratio | faults | MiB "
        "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  }
  std::fflush(stdout);
}

bool Report::Wanted(const std::string& name) const {
  static const std::regex filter(absl::GetFlag(FLAGS_filter));
  return std::regex_search(name, filter);
}

void Report::Measure(const Case& one, int rounds) {
  const std::vector<Series> all = TakeTurns(one.sides, rounds);
  std::map<std::string, size_t> best;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [place, first] = best.try_emplace(one.sides[i].name, i);
    if (!first && all[i].Sum().rate > all[place->second].Sum().rate) place->second = i;
    errors_ += all[i].Sum().errors;
  }
  auto pairs = one.pairs;
  const std::string& first = one.sides[0].name;
  if (pairs.empty()) {
    for (const auto& [name, side] : best) {
      if (name != first) pairs.emplace_back(first, name);
    }
  }
  for (const auto& [name, other] : pairs) {
    Row(one, name, all[best.at(name)], other, all[best.at(other)]);
  }
}

void Report::Row(const Case& one, const std::string& name, const Series& side,
                 const std::string& other, const Series& beside) {
  const Figures ours = side.Sum(), theirs = beside.Sum();
  const Ratios to = Compare(side, beside);
  rows_[section_].push_back({{"case", one.name},
                             {"side", name},
                             {"bytes", one.bytes},
                             {"figures", ToJson(ours)},
                             {"beside", other},
                             {"beside_figures", ToJson(theirs)},
                             {"ratios", ToJson(to)}});
  const auto rate = [&](const Figures& figures) {
    return one.bytes == 0 ? absl::StrFormat("%.0f", figures.rate)
                          : absl::StrFormat("%.1f%s", figures.rate * one.bytes / 1e9,
                                            columns_ == Columns::kCalls ? " GB" : "");
  };
  absl::PrintF("| %s |", one.name);
  if (columns_ == Columns::kCalls) absl::PrintF(" %s |", name);
  absl::PrintF(" %s | %s | %s | %.2f | %.2f to %.2f |", rate(ours), other, rate(theirs),
               to.rate.median, to.rate.low, to.rate.high);
  if (columns_ == Columns::kCalls) {
    absl::PrintF(" %.1f | %.2f | %.1f | %.2f | %.1f | %.2f | %.2f | %.0f |", ours.p50 * 1e6,
                 to.p50.median, ours.p99 * 1e6, to.p99.median, ours.cpu * 1e6, to.cpu.median,
                 ours.faults, ours.resident_bytes / (1 << 20));
  }
  absl::PrintF("%s\n", ours.errors + theirs.errors > 0 ? " ERRORS" : "");
  std::fflush(stdout);
}

void Report::Note(const std::string& name, double value, const std::string& unit) {
  rows_[section_].push_back({{"case", name}, {"value", value}, {"unit", unit}});
  absl::PrintF("| %s | %.1f %s |\n", name, value, unit);
  std::fflush(stdout);
}

void Report::LeftOut(const std::string& why) {
  rows_[section_].push_back({{"case", "left out"}, {"why", why}});
  absl::PrintF("left out: %s\n", why);
}

bool Report::Write(const std::string& path) const {
  nlohmann::json all = nlohmann::json::parse(std::ifstream(path), nullptr, false);
  if (!all.is_object()) all = nlohmann::json::object();
  all.update(rows_);
  std::ofstream file(path);
  file << all.dump(1) << "\n";
  file.close();
  return !file.fail();
}

}  // namespace quantd::bench
