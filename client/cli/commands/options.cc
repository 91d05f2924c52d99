#include "commands/options.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "commands/flags.h"
#include "files/closest_name.h"

namespace quantd::cli {
namespace {

constexpr char kExitCodes[] =
    "Exit code: 0: success; 1: a tensor cannot be quantized this way, or the server refused or\n"
    "cannot be reached; 2: wrong usage, or a file that cannot be read or written; 128 + n: ended "
    "by\n"
    "signal n, without partial output. An error is one line on stderr.";

// Every command with its flags, in the order of the help.
void AddCommands(CLI::App* app, Options* o) {
  const auto add = [&](const char* name, const char* what) {
    CLI::App* command = app->add_subcommand(name, what);
    command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    command->footer(kExitCodes);
    // With a callback of its own, CLI11 reads the variables only for the given command; without
    // one, another command's copy of a flag would replace the given value by that of the variable.
    command->parse_complete_callback([] {});
    return Flags(command, o);
  };
  add("quantize",
      "Quantize a tensor file, with scale and zero point from the data or from the flags.\n\nIn a "
      ".safetensors, tensors of float, float16, bfloat16 or float64 (rounded to float first)\nwith "
      "two or more dimensions are quantized; the others are copied, and listed with the "
      "reason.\n\n  quantctl quantize model.safetensors -o small.safetensors --type=int8 --axis=0")
      .Input("A .npy or .safetensors")
      .Output()
      .Finding()
      .Granularity()
      .Choice()
      .All()
      .Given()
      .Rounding()
      .Engine()
      .Printing();
  add("dequantize",
      "Turn a quantized file back into floats of the original types; other tensors are copied.\n\n "
      " quantctl dequantize small.safetensors -o model.safetensors\n  quantctl dequantize y.npy -o "
      "x.npy --scale=0.02 --zero_point=128")
      .Input("The output of quantize, or any tensor file together with --scale")
      .Output()
      .Back()
      .Choice()
      .Given()
      .Granularity()
      .Engine()
      .Printing();
  add("convert",
      "Convert a model to the layouts that vLLM, transformers, llama.cpp and others load, with the "
      "bits\nof their own packages, or back to floats. Tensors that are not weights are copied.\n\n"
      "  quantctl convert model -o small --to=compressed-tensors:int8\n"
      "  quantctl convert model -o model.gguf --to=gguf:q8_0\n"
      "  quantctl convert small -o back --to=bf16")
      .Input("A folder with config.json and .safetensors, one .safetensors, or one .gguf")
      .Convert()
      .Choice()
      .Computing()
      .Printing();
  add("calibrate",
      "Find scale, zero point and range of one quantity in many files. The order of the files, and "
      "the\nway in which the data is divided into them, change no bit of the result.\n\n"
      "  quantctl calibrate batch-*.npy -o ranges.safetensors --method=percentile --type=int8\n"
      "  quantctl calibrate vectors.npy -o ranges.safetensors --axis=-1")
      .Inputs(".npy, or a .safetensors (one tensor, or those of --only)")
      .Output()
      .Calibrate()
      .Choice()
      .Engine()
      .Printing();
  add("embeddings",
      "embeddings quantize: encode embeddings in the format of a vector database, bit for bit as "
      "its\nown library does. The last dimension of the file's array is the embedding.\n\n"
      "  quantctl embeddings quantize vectors.npy -o codes.npy --preset=pgvector")
      .Input("A .npy")
      .Output()
      .Embeddings()
      .Engine()
      .Printing();
  Flags inspect =
      add("inspect",
          "Show the contents of a tensor file: types, shapes, statistics and histograms, and for "
          "quantized\ntensors type and granularity. With --type, show the error that quantizing to "
          "it would cause.\n\n  quantctl inspect small.safetensors --against=model.safetensors");
  inspect.Input("A .npy or .safetensors")
      .Text("--against", &o->against,
            "The original file: show the difference between it and the quantized tensors");
  inspect.Finding().Granularity().Bins().Choice().Engine().Printing();
  add("info", "Show a server's version, instruction set, limits and extensions")
      .Address("The server; default: the first of QUANTD_LISTEN, else 127.0.0.1:50051")
      .Printing();
  add("health", "Exit with 0 if a server is serving; for container health checks")
      .Address("The server; default: the first of QUANTD_LISTEN, else 127.0.0.1:50051")
      .Printing()
      .Text("--service", &o->service,
            "Service to ask about, such as quantd.v1.QuantizationService (default: the server)");
  add("top",
      "Show what a server does now, every second, or once if the output is not a terminal.\n\n  "
      "quantctl top 127.0.0.1:9464")
      .Top();
}

std::vector<std::string> NamesOf(CLI::App* app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app->get_subcommands({})) names.push_back(command->get_name());
  return names;
}

absl::Status Wrong(absl::string_view text, absl::string_view command) {
  return absl::InvalidArgumentError(
      absl::StrCat(text, "; see quantctl ", command, command.empty() ? "" : " ", "--help"));
}

// Why an argument was not expected: a misspelt flag, or too many files.
absl::Status Unexpected(const std::string& word, CLI::App* command) {
  if (word.empty() || word[0] != '-') {
    return Wrong(absl::StrCat("'", word, "' is one file too many"), command->get_name());
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  const std::string name = word.substr(0, word.find('='));
  return Wrong(absl::StrCat("unknown flag '", word, "'", DidYouMean(name, names)),
               command->get_name());
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app(
      "quantctl: quantizes tensor files (.npy, .safetensors), in its own process or on a quantd "
      "server, and converts models.",
      "quantctl");
  app.set_version_flag("--version", absl::StrCat("quantctl ", QUANTCTL_VERSION));
  app.set_help_flag("-h,--help", "Print this");
  app.require_subcommand(1);
  app.footer(absl::StrCat("quantctl COMMAND --help describes each command.\n\n", kExitCodes));
  AddCommands(&app, &line.options);

  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (words.empty()) return Wrong("no command", "");
  if (words[0] == "embeddings" && (words.size() == 1 || !absl::StartsWith(words[1], "-"))) {
    if (words.size() == 1 || words[1] != "quantize") {
      return Wrong(absl::StrCat("embeddings ", words.size() == 1 ? "" : words[1],
                                " is not a command; embeddings quantize is"),
                   "embeddings");
    }
    words.erase(words.begin() + 1);
  }
  const std::vector<std::string> commands = NamesOf(&app);
  if (!absl::StartsWith(words[0], "-") &&
      std::find(commands.begin(), commands.end(), words[0]) == commands.end()) {
    return Wrong(absl::StrCat("no command '", words[0], "'", DidYouMean(words[0], commands)), "");
  }
  CLI::App* command = nullptr;
  try {
    std::reverse(words.begin(), words.end());  // in the order that CLI11 expects
    app.parse(words);
    command = app.get_subcommands()[0];
  } catch (const CLI::CallForVersion& version) {
    line.text = absl::StrCat(version.what(), "\n");
    return line;
  } catch (const CLI::Success&) {
    line.text = app.help();
    return line;
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    command = chosen.empty() ? &app : chosen[0];
    const std::vector<std::string> left = command->remaining();
    if (!left.empty()) return Unexpected(left[0], command);
    return Wrong(error.what(), chosen.empty() ? "" : command->get_name());
  }
  line.options.command = command->get_name();
  return line;
}

}  // namespace quantd::cli
