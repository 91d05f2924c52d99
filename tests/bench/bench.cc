// Measures: quantd_bench SECTION... [flags].
#include "bench.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "quantd/executor.h"
#include "quantd/targets.h"

#ifdef QUANTD_BINARY
#include "server/process/malloc.h"
#else
#define QUANTD_BINARY ""
#define QUANTD_BENCH_CORE_ONLY
#endif

ABSL_FLAG(bool, quick, false, "less of each, and not what takes long");
ABSL_FLAG(std::string, filter, "",
          "only cases whose name this regular expression is found in, such as 'tcp 1 MiB x 4'");
ABSL_FLAG(std::vector<std::string>, sizes, {}, "of tensors in this process, such as 64KiB,1MiB");
ABSL_FLAG(std::vector<std::string>, threads, {}, "in this process, such as 1,2");
ABSL_FLAG(std::string, simd, "", "target in this process; default: the best, or QUANTD_SIMD");
ABSL_FLAG(int, rounds, 0, "turns of each side; default: what the section takes");
ABSL_FLAG(double, seconds, 0, "of a turn; default: what the section takes");
ABSL_FLAG(std::string, json, "", "put the results into this file, beside those of other sections");
ABSL_FLAG(std::string, binary, QUANTD_BINARY, "another quantd, to compare two builds");
ABSL_FLAG(std::string, before, "", "a third side of calls: an older quantd");
ABSL_FLAG(std::vector<std::string>, quantd, {}, "flags for quantd, such as --threads=1");
ABSL_FLAG(std::string, onnxruntime, "", "its shared library; default: without it");
ABSL_FLAG(std::string, models, "", "folder that models.py has written");
ABSL_FLAG(std::string, python, "", "interpreter that has grpc and onnxruntime, for aio_server.py");

namespace quantd::bench {
namespace {

struct Section {
  absl::string_view name;
  void (*run)(Report& report);
};
constexpr Section kSections[] = {
    {"kernels", RunKernels}, {"operations", RunOperations},
#ifndef QUANTD_BENCH_CORE_ONLY
    {"table", RunTable},     {"stream", RunStream},
    {"beside", RunBeside},   {"shared", RunShared},
    {"tls", RunTls},         {"scaling", RunScaling},
    {"peers", RunPeers},
#endif
};

std::string MakeFolder() {
  std::string folder = "/tmp/quantd_bench_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::exit(1);
  return folder;
}

[[noreturn]] void Wrong(const std::string& text) {
  std::fprintf(stderr, "quantd_bench: what is '%s'?\n", text.c_str());
  std::exit(2);
}

int Main(const std::vector<std::string>& names) {
  absl::Status status = CheckEnvironmentTarget();
  if (const std::string simd = absl::GetFlag(FLAGS_simd); status.ok() && !simd.empty()) {
    status = SelectTarget(simd);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "quantd_bench: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  Report report;
  for (const std::string& name : names) {
    const auto* const section = std::find_if(std::begin(kSections), std::end(kSections),
                                             [&](const Section& one) { return one.name == name; });
    if (section == std::end(kSections)) Wrong(name);
    section->run(report);
  }
  std::filesystem::remove_all(Folder());
  if (report.errors() > 0) {
    std::fprintf(stderr, "quantd_bench: %llu calls failed\n",
                 static_cast<unsigned long long>(report.errors()));
  }
  const std::string path = absl::GetFlag(FLAGS_json);
  if (!path.empty() && !report.Write(path)) {
    std::fprintf(stderr, "quantd_bench: can't write %s\n", path.c_str());
    return 1;
  }
  return report.errors() > 0 ? 1 : 0;
}

}  // namespace

int Rounds(int quick, int full) {
  const int rounds = absl::GetFlag(FLAGS_rounds);
  return rounds > 0 ? rounds : absl::GetFlag(FLAGS_quick) ? quick : full;
}

double Seconds(double otherwise) {
  const double seconds = absl::GetFlag(FLAGS_seconds);
  return seconds > 0 ? seconds : otherwise;
}

std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  for (const std::string& text : absl::GetFlag(FLAGS_sizes)) {
    absl::string_view item = text;
    const int shift = absl::ConsumeSuffix(&item, "KiB")   ? 10
                      : absl::ConsumeSuffix(&item, "MiB") ? 20
                                                          : 0;
    size_t number;
    if (shift == 0 || !absl::SimpleAtoi(item, &number) || number == 0) Wrong(text);
    sizes.push_back(number << shift);
  }
  if (!sizes.empty()) return sizes;
  sizes = {size_t{1} << 20, size_t{16} << 20};
  if (!absl::GetFlag(FLAGS_quick)) sizes.push_back(size_t{256} << 20);
  return sizes;
}

std::vector<int> Threads() {
  std::vector<int> threads;
  for (const std::string& text : absl::GetFlag(FLAGS_threads)) {
    int number;
    if (!absl::SimpleAtoi(text, &number) || number < 1 || number > 1024) Wrong(text);
    threads.push_back(number);
  }
  if (!threads.empty()) return threads;
  const int all = Executor::DefaultThreads();
  return all == 1 ? std::vector<int>{1} : std::vector<int>{1, all};
}

const std::string& Folder() {
  static const std::string folder = MakeFolder();
  return folder;
}

}  // namespace quantd::bench

int main(int argc, char** argv) {
#ifndef QUANTD_BENCH_CORE_ONLY
  // The load's own page faults would hide the servers'.
  quantd::process::KeepFreedMemory();
  if (argc > 1 && absl::string_view(argv[1]) == "flood") {
    return quantd::bench::RunFlood({argv + 2, argv + argc});
  }
#endif
  absl::SetProgramUsageMessage("SECTION... [flags]");
  const std::vector<char*> words = absl::ParseCommandLine(argc, argv);
  return quantd::bench::Main({words.begin() + 1, words.end()});
}
