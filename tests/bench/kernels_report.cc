#include "kernels_report.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace quantd::bench {

std::string SizeName(size_t bytes) {
  return bytes < (1 << 20) ? absl::StrCat(bytes >> 10, " KiB") : absl::StrCat(bytes >> 20, " MiB");
}

void PrintTable(const std::vector<Result>& results, int threads) {
  std::vector<size_t> sizes;
  std::vector<std::string> names;
  for (const Result& result : results) {
    if (result.threads != threads) continue;
    if (std::find(sizes.begin(), sizes.end(), result.bytes) == sizes.end()) {
      sizes.push_back(result.bytes);
    }
    if (std::find(names.begin(), names.end(), result.name) == names.end()) {
      names.push_back(result.name);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  absl::PrintF("\n%d thread%s: GB/s of FLOAT (of the limit)\n%-44s", threads,
               threads == 1 ? "" : "s", "");
  for (const size_t size : sizes) absl::PrintF(" %15s", SizeName(size));
  absl::PrintF("  limit\n");
  for (const std::string& name : names) {
    absl::PrintF("%-44s", name);
    std::string limit;
    for (const size_t size : sizes) {
      const auto found = std::find_if(results.begin(), results.end(), [&](const Result& r) {
        return r.threads == threads && r.name == name && r.bytes == size;
      });
      if (found == results.end()) {
        absl::PrintF(" %15s", "");
        continue;
      }
      absl::PrintF(" %8.1f (%.2f)", found->gigabytes_per_second, found->ratio);
      limit = found->limit;
    }
    absl::PrintF("  %s\n", limit);
  }
}

bool WriteJson(const std::vector<Result>& results, const std::string& target,
               const std::string& path) {
  std::ofstream file(path);
  file << "{\n  \"target\": \"" << target << "\",\n  \"results\": [";
  const char* comma = "\n";
  for (const Result& r : results) {
    file << comma
         << absl::StrFormat(
                "    {\"name\": \"%s\", \"bytes\": %d, \"threads\": %d, \"gb_per_s\": %.3f, "
                "\"limit\": \"%s\", \"ratio\": %.4f}",
                r.name, r.bytes, r.threads, r.gigabytes_per_second, r.limit, r.ratio);
    comma = ",\n";
  }
  file << "\n  ]\n}\n";
  file.close();
  return file.good();
}

}  // namespace quantd::bench
