// Measures quantd's calls beside a raw echo with replies of the same size (rpc_echo.cc).
//
//   rpc_bench [--quick] [--only=TEXT] [--json=FILE] [--rounds=N] [--turn_seconds=S]
//             [--binary=FILE] [--quantd=FLAG]...
//
// --only: a section (table, stream, beside, fair, scaling, shared, tls, memory) or rows of the
// table whose name, "call transport bytes in_flight", contains the text, such as "tcp 1048576 4".
// --binary: another quantd, to compare two builds; --quantd: a flag for it.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "rpc_flood.h"
#include "rpc_sections.h"
#include "server/process/malloc.h"

namespace quantd::bench {
namespace {

struct Section {
  const char* name;
  nlohmann::json (*run)(const Options& options, uint64_t& errors);
  bool quick;  // part of --quick, too
};
constexpr Section kSections[] = {
    {"table", RunTable, true}, {"stream", RunStream, true},    {"beside", RunBeside, true},
    {"fair", RunFair, true},   {"scaling", RunScaling, false}, {"shared", RunShared, true},
    {"tls", RunTls, true},     {"memory", RunMemory, true},
};

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view text = argv[i];
    bool good = true;
    if (text == "--quick") {
      options.quick = true;
    } else if (absl::ConsumePrefix(&text, "--rounds=")) {
      good = absl::SimpleAtoi(text, &options.rounds);
    } else if (absl::ConsumePrefix(&text, "--turn_seconds=")) {
      good = absl::SimpleAtod(text, &options.turn_seconds);
    } else if (absl::ConsumePrefix(&text, "--json=")) {
      options.json = std::string(text);
    } else if (absl::ConsumePrefix(&text, "--only=")) {
      options.only = std::string(text);
    } else if (absl::ConsumePrefix(&text, "--binary=")) {
      options.quantd = std::string(text);
    } else if (absl::ConsumePrefix(&text, "--quantd=")) {
      options.quantd_flags.push_back(std::string(text));
    } else {
      good = false;
    }
    if (!good) {
      std::fprintf(stderr, "rpc_bench: what is '%s'?\n", argv[i]);
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  // The load's own page faults would hide the servers'.
  process::KeepFreedMemory();
  if (argc > 1 && absl::string_view(argv[1]) == "--flood") return RunFlood({argv + 2, argv + argc});
  Options options;
  options.quantd = QUANTD_BINARY;
  if (!Parse(argc, argv, options)) return 2;
  if (options.rounds == 0) options.rounds = options.quick ? 14 : 20;
  const Section* chosen = nullptr;
  for (const Section& section : kSections) {
    if (options.only == section.name) chosen = &section;
  }
  // Any other text is for the table.
  if (chosen == nullptr && !options.only.empty()) chosen = &kSections[0];
  if (chosen != nullptr && options.only == chosen->name) options.only.clear();
  char folder[] = "/tmp/rpc_bench_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  options.folder = folder;
  nlohmann::json all;
  uint64_t errors = 0;
  for (const Section& section : kSections) {
    if (chosen == &section || (chosen == nullptr && (section.quick || !options.quick))) {
      all[section.name] = section.run(options, errors);
    }
  }
  std::filesystem::remove_all(folder);
  if (errors > 0) {
    std::fprintf(stderr, "rpc_bench: %llu calls failed\n", static_cast<unsigned long long>(errors));
  }
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << all.dump(1) << "\n";
    file.close();
    if (file.fail()) return 1;
  }
  return errors > 0 ? 1 : 0;
}

}  // namespace
}  // namespace quantd::bench

int main(int argc, char** argv) { return quantd::bench::Main(argc, argv); }
