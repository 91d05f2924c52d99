#include "arguments.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace quantd::cli {
namespace {

struct Command {
  absl::string_view name, operands, summary, text, flags;
  size_t files;
};

// What each command is called with. The order of flags is the order of the help.
constexpr std::array kCommands = {
    Command{
        "quantize", "IN -o OUT",
        "make a tensor file small: find scale and zero point in the data, or take them",
        "IN is a .npy or .safetensors with float, float16, bfloat16 or float64 tensors\n"
        "(float64 is rounded to float first; int32 tensors of a .safetensors are left\n"
        "alone unless --scale or --tensor is given). Without --axis, --block_size and\n"
        "--block_shape there is one scale for the tensor. A .safetensors output holds\n"
        "y, y_scale and y_zero_point (or NAME, NAME_scale, NAME_zero_point) and all\n"
        "that dequantize needs.\n"
        "\n"
        "  quantctl quantize embeddings.npy -o embeddings.safetensors --type=int8 --axis=0\n"
        "  quantctl quantize model.safetensors -o small.safetensors --type=mxfp4 "
        "--tensor='*.weight'\n"
        "  quantctl quantize x.npy -o y.npy --type=uint8 --scale=0.02 --zero_point=128\n",
        "output type axis block_size block_shape symmetric scale_type scale zero_point precision "
        "zero_point_order saturate non_finite report_error tensor piece_bytes address timeout "
        "json quiet",
        1},
    Command{
        "dequantize", "IN -o OUT", "turn a quantized file back into floats",
        "IN is what quantize wrote (scale, zero point and blocks are found in it), or any tensor\n"
        "file together with --scale, --zero_point and the granularity.\n"
        "\n"
        "  quantctl dequantize embeddings.safetensors -o back.npy\n"
        "  quantctl dequantize y.npy -o back.npy --scale=0.02 --zero_point=128\n",
        "output output_type scale zero_point tensor_scale axis block_size block_shape type shape "
        "tensor piece_bytes address timeout json quiet",
        1},
    Command{
        "inspect", "FILE", "show what a tensor file holds: types, shapes, statistics, histograms",
        "With --type, or when a server answers, the error that quantizing would make is shown as\n"
        "well (uint8 unless --type says otherwise).\n"
        "\n"
        "  quantctl inspect embeddings.npy --type=int4 --block_size=32 --axis=-1\n",
        "tensor bins type axis block_size block_shape symmetric scale_type saturate non_finite "
        "piece_bytes address timeout json quiet",
        1},
    Command{"info", "", "what the server is and what it allows", "", "address timeout json", 0},
    Command{"health", "", "exit 0 when the server is serving; for container health checks", "",
            "service address timeout json quiet", 0},
};

const Command* FindCommand(absl::string_view name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

absl::Status Wrong(absl::string_view text, absl::string_view command) {
  return absl::InvalidArgumentError(
      absl::StrCat(text, "; see quantctl ", command, command.empty() ? "" : " ", "--help"));
}

// `text`, broken into lines of at most 78 columns that start at column `indent`.
std::string Wrapped(absl::string_view text, size_t indent) {
  std::string result;
  size_t column = indent;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column > indent && column + 1 + word.size() > 78) {
      absl::StrAppend(&result, "\n", std::string(indent, ' '));
      column = indent;
    } else if (column > indent) {
      absl::StrAppend(&result, " ");
      ++column;
    }
    absl::StrAppend(&result, word);
    column += word.size();
  }
  return result;
}

bool IsBool(const absl::CommandLineFlag& flag) { return flag.IsOfType<bool>(); }

bool IsList(const absl::CommandLineFlag& flag) { return flag.IsOfType<std::vector<std::string>>(); }

absl::Status SetFlag(absl::string_view name, absl::string_view value, absl::string_view command) {
  std::string error;
  if (absl::FindCommandLineFlag(name)->ParseFrom(value, &error)) return absl::OkStatus();
  return Wrong(absl::StrCat("--", name, "='", value, "' is not a valid value"), command);
}

}  // namespace

absl::StatusOr<Arguments> ParseArguments(int argc, const char* const* argv) {
  std::vector<absl::string_view> words(argv + 1, argv + argc);
  Arguments arguments;
  // The command is the first word that is not a flag; help is asked for in any place.
  for (const absl::string_view word : words) {
    if (!absl::StartsWith(word, "-")) {
      arguments.command = std::string(word);
      break;
    }
  }
  for (const absl::string_view word : words) {
    if (word != "--help" && word != "-h" && arguments.command != "help") continue;
    const bool about = arguments.command != "help";
    arguments.files = {about ? arguments.command : words.size() > 1 ? std::string(words[1]) : ""};
    arguments.command = "help";
    return arguments;
  }
  if (arguments.command.empty()) return Wrong("no command", "");
  const Command* command = FindCommand(arguments.command);
  if (command == nullptr) return Wrong(absl::StrCat("no command '", arguments.command, "'"), "");

  const std::vector<std::string> known = absl::StrSplit(command->flags, ' ');
  const auto is_flag = [&](absl::string_view name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  std::map<std::string, std::string> values;
  bool seen_command = false;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i] == "-o" ? "--output" : words[i];
    if (!absl::ConsumePrefix(&word, "--") || word.empty()) {
      if (absl::StartsWith(words[i], "-") && words[i].size() > 1) {
        return Wrong(absl::StrCat("unknown flag '", words[i], "'"), command->name);
      }
      if (seen_command) arguments.files.push_back(std::string(words[i]));
      seen_command = true;
      continue;
    }
    const size_t equals = word.find('=');
    absl::string_view name = word.substr(0, equals);
    const bool has_value = equals != absl::string_view::npos;
    std::string value = has_value ? std::string(word.substr(equals + 1)) : "";
    if (!has_value && !is_flag(name) && absl::ConsumePrefix(&name, "no") && is_flag(name) &&
        IsBool(*absl::FindCommandLineFlag(name))) {
      value = "false";
    } else if (!is_flag(name)) {
      return Wrong(absl::StrCat("unknown flag '", words[i], "'"), command->name);
    } else if (!has_value && IsBool(*absl::FindCommandLineFlag(name))) {
      value = "true";
    } else if (!has_value) {
      if (i + 1 == words.size()) {
        return Wrong(absl::StrCat("--", name, " needs a value"), command->name);
      }
      value = std::string(words[++i]);
    }
    std::string& before = values[std::string(name)];
    before = before.empty() || !IsList(*absl::FindCommandLineFlag(name))
                 ? value
                 : absl::StrCat(before, ",", value);
  }
  if (arguments.files.size() != command->files) {
    return Wrong(absl::StrCat("usage: quantctl ", command->name, " ", command->operands),
                 command->name);
  }
  if (const char* address = std::getenv("QUANTD_ADDRESS");
      address != nullptr && *address != '\0' && values.count("address") == 0) {
    values["address"] = address;
  }
  for (const auto& [name, value] : values) {
    if (absl::Status status = SetFlag(name, value, command->name); !status.ok()) return status;
  }
  return arguments;
}

std::string HelpText(absl::string_view name) {
  const Command* command = FindCommand(name);
  if (command == nullptr) {
    std::string text =
        "quantctl: quantizes tensor files (.npy, .safetensors) with a quantd server.\n\n"
        "Usage: quantctl COMMAND [FILE] [--flag=value ...]\n\n";
    for (const Command& each : kCommands) {
      absl::StrAppend(&text, "  ", each.name, std::string(12 - each.name.size(), ' '), each.summary,
                      "\n");
    }
    absl::StrAppend(&text, "\nquantctl COMMAND --help says more about each.\n\n",
                    "Exit code: 0 done; 1 the server said no, or could not be reached; 2 wrong "
                    "usage, or a file\nthat cannot be read or written. Errors go to stderr.\n");
    return text;
  }
  std::string text =
      absl::StrCat("Usage: quantctl ", command->name, " ", command->operands,
                   command->operands.empty() ? "" : " ", "[--flag=value ...]\n\n", command->summary,
                   ".\n", command->text.empty() ? "" : "\n", command->text, "\n");
  for (const absl::string_view flag_name : absl::StrSplit(command->flags, ' ')) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(flag_name);
    const std::string standard = flag->DefaultValue();
    const bool show = !standard.empty() && !IsBool(*flag) && standard != "0";
    absl::StrAppend(&text, "  --", flag_name,
                    IsBool(*flag) && standard == "true" ? " (on unless --no...)" : "", "\n      ",
                    Wrapped(absl::StrCat(flag->Help(), show ? " Default: " : "",
                                         show ? standard : "", show ? "." : ""),
                            6),
                    "\n");
  }
  absl::StrAppend(
      &text,
      "\nExit code: 0 done; 1 the server said no, or could not be reached; 2 wrong usage, "
      "or a file\nthat cannot be read or written.\n");
  return text;
}

}  // namespace quantd::cli
