// quantctl inspect of what quantctl convert reads and writes: a line for each tensor with its role,
// and totals. Only headers are read.
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/inventory.h"
#include "checkpoints/model.h"
#include "checkpoints/selection.h"
#include "commands/commands.h"
#include "files/text.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

using checkpoints::Inventory;
using checkpoints::Tensor;

// In the order of TensorRole.
constexpr std::array<const char*, 7> kRoles = {"linear", "floats",     "other",  "codes",
                                               "part",   "activation", "unknown"};

struct Total {
  size_t tensors = 0;
  uint64_t bytes = 0;

  std::string Text() const { return absl::StrCat(tensors, " tensors  ", bytes, " bytes\n"); }
};

}  // namespace

bool IsModel(const std::string& path) {
  struct stat status;
  const bool is_folder = stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return is_folder || absl::EndsWithIgnoreCase(path, ".gguf");
}

absl::Status InspectModel(const Options& options) {
  if (!options.against.empty() || !options.spec.type.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.input, " is a model: --against and --type look at the values of one .safetensors"));
  }
  QUANTD_ASSIGN_OR_RETURN(const checkpoints::Choice choice,
                          checkpoints::Choice::Of(options.only, options.skip));
  QUANTD_ASSIGN_OR_RETURN(const checkpoints::Model model, checkpoints::OpenModel(options.input));
  QUANTD_ASSIGN_OR_RETURN(const Inventory inventory, checkpoints::TakeInventory(model));
  Json tensors = Json::array();
  std::array<Total, kRoles.size()> roles;
  Total all;
  for (const checkpoints::Place place : model.All()) {
    const Tensor& tensor = model.tensor(place);
    if (!choice.SkipReason(tensor.name).empty()) continue;
    const checkpoints::InventoryEntry& entry = inventory.at(place);
    const auto role = static_cast<size_t>(entry.role);
    for (Total* total : {&all, &roles[role]}) {
      ++total->tensors;
      total->bytes += tensor.bytes;
    }
    const std::string what = checkpoints::RoleText(inventory, place);
    if (options.json) {
      Json& row = tensors.emplace_back(Json{{"name", tensor.name},
                                            {"dtype", tensor.dtype},
                                            {"shape", ShapeJson(tensor.shape)},
                                            {"bytes", tensor.bytes},
                                            {"role", kRoles[role]},
                                            {"text", what}});
      if (entry.weight >= 0) {
        row["weight"] = inventory.weights[static_cast<size_t>(entry.weight)].name;
      }
    } else if (!options.quiet) {
      std::fputs(
          absl::StrCat(Printable(tensor.name), "  ", tensor.dtype, " ", ShapeString(tensor.shape),
                       "  ", tensor.bytes, " bytes  ", Printable(what), "\n")
              .c_str(),
          stdout);
    }
  }
  Json totals = Json::object();
  std::string text = absl::StrCat("total  ", all.Text());
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i].tensors == 0) continue;
    totals[kRoles[i]] = {{"tensors", roles[i].tensors}, {"bytes", roles[i].bytes}};
    absl::StrAppend(&text, "  ", kRoles[i], "  ", roles[i].Text());
  }
  if (options.json) {
    const std::string& method = inventory.quantization.method;
    std::fputs(Dump({{"file", options.input},
                     {"quant_method", method.empty() ? Json() : Json(method)},
                     {"tensors", std::move(tensors)},
                     {"roles", std::move(totals)},
                     {"bytes", all.bytes}})
                   .c_str(),
               stdout);
  } else if (!options.quiet) {
    std::fputs(text.c_str(), stdout);
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
