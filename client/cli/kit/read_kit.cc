#include "kit/read_kit.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "files/mapped_file.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

namespace fs = std::filesystem;

// The folders with a model.onnx, and the .json files in other/FAMILY/; sorted.
struct Found {
  std::vector<fs::path> models, groups;
};

absl::StatusOr<Found> Look(const std::string& folder) {
  Found found;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    if (path.filename() == "model.onnx") found.models.push_back(path.parent_path());
    if (path.extension() == ".json" && path.parent_path().parent_path().filename() == "other") {
      found.groups.push_back(path);
    }
  }
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": ", error.message()));
  }
  std::sort(found.models.begin(), found.models.end());
  std::sort(found.groups.begin(), found.groups.end());
  return found;
}

// A kit with missing files must not pass.
absl::Status CheckWhole(const std::string& folder, const std::vector<KitCase>& cases) {
  const std::string path = folder + "/manifest.json";
  if (!fs::exists(path)) return absl::OkStatus();
  QUANTD_ASSIGN_OR_RETURN(const auto mapped, MappedFile::Open(path));
  const auto bytes = mapped->bytes();
  const nlohmann::json manifest =
      nlohmann::json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains("cases") ||
      !manifest["cases"].is_number_unsigned()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " does not say how many cases there are"));
  }
  const uint64_t promised = manifest["cases"].get<uint64_t>();
  if (promised == cases.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(folder, " is incomplete: it has ", cases.size(),
                                                 " cases, manifest.json lists ", promised));
}

}  // namespace

absl::StatusOr<std::vector<KitCase>> ReadKit(const std::string& folder) {
  QUANTD_ASSIGN_OR_RETURN(const Found found, Look(folder));
  std::vector<KitCase> cases;
  for (const fs::path& model : found.models) {
    const std::string name =
        absl::StrCat(model.parent_path().filename().string(), "/", model.filename().string());
    absl::StatusOr<KitCase> one = ReadOnnxCase(model.string(), name);
    if (!one.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(model.string(), ": ", one.status().message()));
    }
    cases.push_back(*std::move(one));
  }
  for (const fs::path& group : found.groups) {
    QUANTD_ASSIGN_OR_RETURN(std::vector<KitCase> more, ReadGroup(group.string()));
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  if (cases.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " has no case: neither a model.onnx nor other/FAMILY/*.json"));
  }
  QUANTD_RETURN_IF_ERROR(CheckWhole(folder, cases));
  return cases;
}

}  // namespace quantd::cli
