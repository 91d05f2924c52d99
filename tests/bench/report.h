// The one table and the one JSON file of all sections: a row for each pair of sides of a case, with
// the figures of both and the ratios of their neighbouring turns.
#ifndef QUANTD_TESTS_BENCH_REPORT_H_
#define QUANTD_TESTS_BENCH_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "turns.h"

namespace quantd::bench {

struct Case {
  std::string name;
  // Two at least. Several of one name are ways to do the same: the fastest of them counts.
  std::vector<Side> sides;
  // FLOAT of a call or a pass: rates are shown in GB/s of it. 0: in calls a second.
  size_t bytes = 0;
  // Which side is compared with which; none: the first with each of the others.
  std::vector<std::pair<std::string, std::string>> pairs = {};
};

// What the rows of a section have: work in this process has a rate and nothing else; notes.
enum class Columns { kRates, kCalls, kNotes };

class Report {
 public:
  // Goes on with a section and another table.
  void Begin(const std::string& section, const std::string& title, Columns columns);

  // Whether --filter lets the case through: ask before making its sides.
  bool Wanted(const std::string& name) const;
  // Lets the sides take so many turns, prints and keeps the rows.
  void Measure(const Case& one, int rounds);
  // A figure that no turns were taken for.
  void Note(const std::string& name, double value, const std::string& unit);
  // Prints and keeps why something was not measured.
  void LeftOut(const std::string& why);
  void CountErrors(uint64_t errors) { errors_ += errors; }

  uint64_t errors() const { return errors_; }
  // Adds its sections to those that are in the file. False when it can't be written.
  bool Write(const std::string& path) const;

 private:
  void Row(const Case& one, const std::string& name, const Series& side, const std::string& other,
           const Series& beside);

  std::string section_;
  Columns columns_ = Columns::kRates;
  uint64_t errors_ = 0;
  nlohmann::json rows_ = nlohmann::json::object();
};

// "64 KiB"
std::string SizeText(size_t bytes);
// "1 thread"
std::string Count(int number, const std::string& what);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_REPORT_H_
