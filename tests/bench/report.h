// The table and the JSON file of all sections: a row for each pair of sides of a case, with the
// figures of both and the ratios of their neighbouring turns.
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
  // At least two. Those with the same name do the same in different ways: the fastest counts.
  std::vector<Side> sides;
  // The FLOAT bytes of a call or a pass: rates are shown in GB/s of them. 0: in calls per second.
  size_t bytes = 0;
  // Which sides are compared; none: the first with each of the others.
  std::vector<std::pair<std::string, std::string>> pairs = {};
};

// The columns of a section: work in this process has only a rate; notes have a value.
enum class Columns { kRates, kCalls, kNotes };

class Report {
 public:
  // Begins a section with a table.
  void Begin(const std::string& section, const std::string& title, Columns columns);

  // Whether --filter selects the case: ask before making its sides.
  bool Wanted(const std::string& name) const;
  // Runs `rounds` turns of each side, prints the rows and keeps them.
  void Measure(const Case& one, int rounds);
  // A figure that was measured without turns.
  void Note(const std::string& name, double value, const std::string& unit);
  // Prints and keeps the reason why something was not measured.
  void LeftOut(const std::string& why);
  void CountErrors(uint64_t errors) { errors_ += errors; }

  uint64_t errors() const { return errors_; }
  // Adds its sections to those in the file. False if it cannot be written.
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
