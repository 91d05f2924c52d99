#include "commands/options.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "commands/flags.h"
#include "commands/pages.h"
#include "commands/terminal.h"
#include "files/closest_name.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

constexpr char kServer[] = "The server; default: the first of QUANTD_LISTEN, else 127.0.0.1:50051";

// Every command with its flags, in the order of the help.
void AddCommands(CLI::App* app, Options* o, ProgramPage* program) {
  program->commands.reserve(16);  // pages do not move
  const auto add = [&](CommandPage page) {
    CLI::App* command = app->add_subcommand(page.name.substr(0, page.name.find(' ')));
    command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    // With a callback of its own, CLI11 reads the variables only for the given command; without
    // one, another command's copy of a flag would replace the given value by that of the variable.
    command->parse_complete_callback([] {});
    program->commands.push_back(std::move(page));
    return Flags(command, o, &program->commands.back());
  };
  add({"quantize",
       "Quantize a tensor file",
       "Scale and zero point come from the data, from the flags or from a calibration. In a "
       ".safetensors, tensors of float, float16, bfloat16 or float64 (rounded to float first) with "
       "two or more dimensions are quantized; the others are copied, and listed with the reason.",
       "  quantctl quantize model.safetensors -o small.safetensors --type=int8 --axis=0\n"
       "  quantctl quantize x.npy -o y.npy --calibration=ranges.safetensors",
       {}})
      .Input("A .npy or .safetensors")
      .Output()
      .Finding()
      .Granularity()
      .Calibrated()
      .Given()
      .Rounding()
      .Choice()
      .All()
      .Table({"file", "name", "sqnr", "error", "size"})
      .Printing()
      .Engine();
  add({"dequantize",
       "Turn a quantized file back into floats",
       "Tensors get their original types; other tensors are copied.",
       "  quantctl dequantize small.safetensors -o model.safetensors\n"
       "  quantctl dequantize y.npy -o x.npy --scale=0.02 --zero_point=128",
       {}})
      .Input("The output of quantize, or any tensor file together with --scale")
      .Output()
      .Back()
      .Given()
      .Granularity()
      .Choice()
      .Table({"file", "name", "size"})
      .Printing()
      .Engine();
  add({"convert",
       "Convert a model to the layouts of vLLM, transformers, llama.cpp and others, or back",
       "The bits are those of their own packages. Tensors that are not weights are copied.",
       "  quantctl convert model -o small --to=compressed-tensors:int8\n"
       "  quantctl convert model -o model.gguf --to=gguf:q8_0\n"
       "  quantctl convert small -o back --to=bf16",
       {}})
      .Input("A folder with config.json and .safetensors, one .safetensors, or one .gguf")
      .Convert()
      .Choice()
      .Printing()
      .Computing();
  add({"calibrate",
       "Find scale, zero point and range of one quantity in many files",
       "The order of the files, and the way in which the data is divided into them, change no bit "
       "of the result.",
       "  quantctl calibrate batch-*.npy -o ranges.safetensors --method=percentile --type=int8\n"
       "  quantctl calibrate vectors.npy -o ranges.safetensors --axis=-1 --method=min_max",
       {}})
      .Inputs(".npy, or a .safetensors (one tensor, or those of --only)")
      .Output()
      .Calibrate()
      .Choice()
      .Printing()
      .Computing();
  add({"embeddings quantize",
       "Encode embeddings in the format of a vector database",
       "Bit for bit as its own library does. The last dimension of the file's array is the "
       "embedding.",
       "  quantctl embeddings quantize vectors.npy -o codes.npy --preset=pgvector",
       {}})
      .Input("A .npy")
      .Output()
      .Embeddings()
      .Printing()
      .Engine();
  add({"inspect",
       "Show the contents of a tensor file",
       "Types, shapes and statistics, and for quantized tensors type and granularity; with "
       "--details also histograms. With --type, the error that quantizing to it would cause. Of a "
       "model (a folder or a .gguf): the role of each tensor.",
       "  quantctl inspect small.safetensors --against=model.safetensors --sort=sqnr",
       {}})
      .Input("A .npy or .safetensors, a model's folder, or a .gguf")
      .Against()
      .Finding()
      .Granularity()
      .Choice()
      .Table({"file", "name", "sqnr", "error", "size"})
      .Bins()
      .Printing()
      .Engine();
  add({"info", "Show a server's version, instruction set, limits and extensions", "", "", {}})
      .Address(kServer)
      .Printing();
  add({"health", "Exit with 0 if a server is serving; for container health checks", "", "", {}})
      .Address(kServer)
      .Service()
      .Printing();
  add({"top",
       "Show what a server does now",
       "Every second, or once if the output is not a terminal.",
       "  quantctl top 127.0.0.1:9464",
       {}})
      .Top();
  add({"completion",
       "Print what a shell needs to complete commands and flags",
       "",
       "  source <(quantctl completion bash)\n"
       "  quantctl completion zsh >\"${fpath[1]}/_quantctl\"",
       {}})
      .Shell();
  add({"man", "Print the man page", "", "  quantctl man | man -l -", {}});
}

absl::Status Wrong(absl::string_view text, absl::string_view command) {
  return absl::InvalidArgumentError(
      absl::StrCat(text, "; see quantctl ", command, command.empty() ? "" : " ", "--help"));
}

// Why an argument was not expected: a misspelt flag, or too many files.
absl::Status Unexpected(const std::string& word, const CLI::App& command, const std::string& name) {
  if (word.empty() || word[0] != '-') {
    return Wrong(absl::StrCat("'", word, "' is one file too many"), name);
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& flag : option->get_lnames()) names.push_back(absl::StrCat("--", flag));
  }
  const std::string flag = word.substr(0, word.find('='));
  return Wrong(absl::StrCat("unknown flag '", word, "'", DidYouMean(flag, names)), name);
}

// --block-size is --block_size.
void ReplaceDashes(std::vector<std::string>* words) {
  for (std::string& word : *words) {
    if (word == "--") return;
    if (!absl::StartsWith(word, "--")) continue;
    const size_t end = std::min(word.find('='), word.size());
    std::replace(word.begin() + 2, word.begin() + static_cast<ptrdiff_t>(end), '-', '_');
  }
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  ProgramPage program = {
      "quantctl",
      QUANTCTL_VERSION,
      "quantizes tensor files (.npy, .safetensors), in its own process or on a quantd "
      "server, and converts models.",
      "Exit code: 0: success; 1: a tensor cannot be quantized this way, or the server refused or "
      "cannot be reached; 2: wrong usage, or a file that cannot be read or written; 128 + n: ended "
      "by signal n, without partial output. An error is one line on stderr.",
      {}};
  CLI::App app("", "quantctl");
  app.set_version_flag("--version", absl::StrCat("quantctl ", QUANTCTL_VERSION));
  app.set_help_flag("-h,--help", "");
  app.require_subcommand(1);
  AddCommands(&app, &line.options, &program);
  const auto page_of = [&program](const std::string& command) {
    return std::find_if(
        program.commands.begin(), program.commands.end(), [&](const CommandPage& page) {
          return page.name == command || absl::StartsWith(page.name, absl::StrCat(command, " "));
        });
  };

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
  if (!absl::StartsWith(words[0], "-") && page_of(words[0]) == program.commands.end()) {
    std::vector<std::string> names;
    for (const CommandPage& page : program.commands) {
      names.push_back(page.name.substr(0, page.name.find(' ')));
    }
    return Wrong(absl::StrCat("no command '", words[0], "'", DidYouMean(words[0], names)), "");
  }
  ReplaceDashes(&words);
  const auto chosen = [&app] {
    const std::vector<CLI::App*> commands = app.get_subcommands();
    return commands.empty() ? &app : commands[0];
  };
  const auto name_of = [&](const CLI::App* command) {
    return command == &app ? "" : command->get_name();
  };
  try {
    std::reverse(words.begin(), words.end());  // in the order that CLI11 expects
    app.parse(words);
  } catch (const CLI::CallForVersion& version) {
    line.text = absl::StrCat(version.what(), "\n");
    return line;
  } catch (const CLI::Success&) {
    constexpr int kWidest = 100, kUsual = 80;
    const int terminal = WidthOf(STDOUT_FILENO);
    const int width = terminal == 0 ? kUsual : std::min(terminal, kWidest);
    const auto page = page_of(name_of(chosen()));
    line.text =
        page == program.commands.end() ? HelpText(program, width) : HelpText(program, *page, width);
    return line;
  } catch (const CLI::ParseError& error) {
    const CLI::App* const command = chosen();
    const std::vector<std::string> left = command->remaining();
    if (!left.empty()) return Unexpected(left[0], *command, name_of(command));
    return Wrong(error.what(), name_of(command));
  }
  line.options.command = chosen()->get_name();
  if (line.options.command == "man") line.text = ManText(program);
  if (line.options.command == "completion") {
    QUANTD_ASSIGN_OR_RETURN(line.text, CompletionText(program, line.options.shell));
  }
  return line;
}

}  // namespace quantd::cli
