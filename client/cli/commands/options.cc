#include "commands/options.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "checkpoints/selection.h"
#include "commands/pages.h"
#include "commands/terminal.h"
#include "files/text.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

// Checks that CLI11 does not make: numbers that are too large are errors, and NaN is not a number.
CLI::Validator Integer(int64_t least, int64_t most) {
  return CLI::Validator(
      [=](std::string& text) {
        int64_t value;
        if (!absl::SimpleAtoi(text, &value)) return absl::StrCat(text, " is not a whole number");
        if (value >= least && value <= most) return std::string();
        return absl::StrCat(text, " is not in [", least, ", ", most, "]");
      },
      "");
}

CLI::Validator Seconds() {
  return CLI::Validator(
      [](std::string& text) {
        double value;
        const bool good = absl::SimpleAtod(text, &value) && value > 0 && value <= 1e9;
        return good ? std::string() : absl::StrCat(text, " is not a number of seconds");
      },
      "");
}

std::string Plain(absl::string_view text) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(text), {{"-", "_"}});
}

// Replaces the text by the choice that it means.
CLI::Validator Choices(std::vector<std::string> choices) {
  return CLI::Validator(
      [choices = std::move(choices)](std::string& text) {
        for (const std::string& choice : choices) {
          if (Plain(choice) != Plain(text)) continue;
          text = choice;
          return std::string();
        }
        return absl::StrCat("'", text, "' is not one of ", absl::StrJoin(choices, ", "),
                            DidYouMean(text, choices));
      },
      "");
}

// Adds flags to a command of the parser and to its page, in groups. Each is defined once, because
// several commands share flags.
class Flags {
 public:
  Flags(CLI::App* command, Options* options, CommandPage* page)
      : command_(command), o_(options), page_(page) {}

  Flags& Input(const char* what) {
    Group("Arguments");
    Add(command_->add_option("file", o_->input, what)->required(), "FILE", what);
    return *this;
  }

  Flags& Inputs(const char* what) {
    Group("Arguments");
    Add(command_->add_option("file", o_->calibrate.inputs, what)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll),
        "FILE...", what);
    return *this;
  }

  Flags& Output() {
    Group("Output");
    Text("-o,--output", &o_->output, "FILE",
         "Output file: one .safetensors, or a .npy with further .npy files beside it")
        ->required();
    Switch("--force", &o_->force, "Overwrite existing files (never the input)");
    Text("--report", &o_->report, "FILE", "Also write the output of --json to this file");
    return *this;
  }

  Flags& Choice() {
    Group("Tensors");
    Text("--only", &o_->only, "REGEX",
         "Process only tensors whose name matches this regular expression (RE2) anywhere");
    Text("--skip", &o_->skip, "REGEX",
         "Do not process tensors whose name matches this regular expression");
    return *this;
  }

  Flags& All() {
    Group("Tensors");
    Switch("--all", &o_->all,
           "Also quantize tensors of fewer than two dimensions, such as biases and norms");
    return *this;
  }

  Flags& Granularity() {
    Group("Granularity");
    Axis(
        "One scale per index along this dimension (counted from the end if negative); with "
        "--block_size, the dimension that is cut into blocks");
    Number("--block_size", &o_->spec.block_size, 0, INT64_MAX,
           "One scale per this many elements along --axis (default 1)");
    List("--block_shape", &o_->spec.block_shape,
         "One scale per block of this shape, such as 128,128; -1: the whole dimension");
    return *this;
  }

  Flags& Finding() {
    Group("Codes and scales");
    SpecFlags& spec = o_->spec;
    Type(
        "Type of the codes (default uint8, with --symmetric int8); the formats mx... and nvfp4 "
        "have "
        "blocks of 32 and 16 "
        "elements along the last dimension",
        true);
    Switch("--symmetric", &spec.symmetric, "A range centred on zero, without a zero point");
    OneOf("--scale_type", &spec.scale_type, "TYPE", "Type of the scale (default float)",
          {"float", "float16", "bfloat16", "float8e8m0", "float8e4m3fn"});
    Switch("--saturate,!--nosaturate,!--no_saturate", &spec.saturate,
           "float8: values beyond the largest become the largest (default); --nosaturate: infinity "
           "or NaN");
    OneOf("--non_finite", &spec.non_finite, "ACTION",
          "NaN and infinities in x: an error (reject, default), or left out of the range (ignore)",
          {"reject", "ignore"});
    return *this;
  }

  Flags& Given() {
    Group("Given scales");
    Text("--scale", &o_->spec.scale, "NUMBERS",
         "The scale, in place of one from the data or the file: a number, one number per index "
         "along "
         "--axis (0.1,0.2), or a .npy");
    Text("--zero_point", &o_->spec.zero_point, "NUMBERS",
         "The zero point for --scale, in the same form; without --type, a .npy's type is that of "
         "the "
         "codes");
    return *this;
  }

  Flags& Calibrated() {
    Group("Given scales");
    Text("--calibration", &o_->calibration, "FILE",
         "Scale, zero point, type and axis as quantctl calibrate wrote them, a .safetensors");
    return *this;
  }

  Flags& Rounding() {
    SpecFlags& spec = o_->spec;
    Group("Given scales");
    OneOf("--precision", &spec.precision, "TYPE", "The type in which x / scale is computed",
          {"float", "float16", "bfloat16"});
    OneOf("--zero_point_order", &spec.zero_point_order, "ORDER",
          "When the zero point is added (default after_rounding, as ONNX; oneDNN: before_rounding)",
          {"after_rounding", "before_rounding"});
    Group("Codes and scales");
    Switch("--report_error,!--noreport_error,!--no_report_error", &spec.report_error,
           "Report the difference between y and x (default); --noreport_error saves a little time");
    return *this;
  }

  Flags& Back() {
    Group("Values");
    OneOf("--output_type", &o_->output_type, "TYPE",
          "Type of y. Default: the original type; with --scale, the scale's type if it is one of "
          "these, else float",
          {"float", "float16", "bfloat16"});
    Group("Given scales");
    Text("--tensor_scale", &o_->spec.tensor_scale, "NUMBER",
         "With --scale: NVFP4's second scale, a number");
    Type("With --scale: type of x, if the file does not have it", false);
    List("--shape", &o_->shape,
         "With --type: shape of x, if the file does not have it (packed types), such as 1000,768");
    return *this;
  }

  Flags& Embeddings() {
    EmbeddingFlags& e = o_->embeddings;
    Group("Encoding");
    OneOf("--preset", &e.preset, "PRESET", "Vector database whose format to use", PresetNames())
        ->required();
    Text("--ranges", &e.ranges, "FILE",
         "For the int8 and uint8 of sentence-transformers: a .npy of two rows, the lowest and the "
         "highest value of each dimension, float; or the output of calibrate --axis=-1 "
         "--method=min_max");
    Switch("--calibrate", &e.calibrate,
           "Instead of --ranges: compute the ranges from the file, and write them to --ranges_out");
    Text("--ranges_out", &e.ranges_out, "FILE",
         "With --calibrate: a .safetensors; by default the output's name with .ranges.safetensors");
    Number("--dimensions", &e.dimensions, 0, INT64_MAX,
           "How many values of each embedding are used, from its beginning; 0 (default): all");
    Switch("--normalize", &e.normalize, "Divide each embedding by its length first");
    OneOf(
        "--non_finite", &o_->spec.non_finite, "ACTION",
        "NaN and infinities: an error (reject, default), or encoded as the format defines (ignore)",
        {"reject", "ignore"});
    Switch("--report_error,!--noreport_error,!--no_report_error", &o_->spec.report_error,
           "Report the difference between the codes and x (default, except for bits)");
    return *this;
  }

  Flags& Calibrate() {
    CalibrateFlags& c = o_->calibrate;
    Group("Calibration");
    OneOf("--method", &c.method, "METHOD",
          "The range: min_max (default), of all values; percentile, of all but the outermost; "
          "entropy, of the least information lost; mse, of the smallest squared error",
          {"min_max", "percentile", "entropy", "mse"});
    Type("The type that will be quantized to (default uint8)", false);
    Axis(
        "One scale per index along this dimension (counted from the end if negative); default: one "
        "scale");
    Add(command_->add_option("--percentile", c.percentile), "NUMBER",
        "With --method=percentile: the share of the values to keep, above 50 and at most 100 "
        "(default 99.99)");
    OneOf("--symmetry", &c.symmetry, "SYMMETRY",
          "Around zero, without a zero point, or not (default for integers)",
          {"symmetric", "asymmetric"});
    OneOf("--non_finite", &o_->spec.non_finite, "ACTION",
          "NaN and infinities: an error (reject, default), or counted and left out (ignore)",
          {"reject", "ignore"});
    Add(command_->add_option("--state", c.states)
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll),
        "FILE",
        "The --state_out of another calibration, which is added to this one; may be repeated");
    Text("--state_out", &c.state_out, "FILE", "Write what was counted to this file, for --state");
    return *this;
  }

  Flags& Convert() {
    Group("Output");
    Text("-o,--output", &o_->output, "OUT",
         "Output: a folder for a folder, a file for a file; for gguf always one .gguf")
        ->required();
    Switch("--force", &o_->force,
           "Overwrite OUT (never the model), and discard the OUT.partial of another run");
    Switch("--resume", &o_->convert.resume,
           "Continue with the OUT.partial of a run that was interrupted");
    Switch("--dry_run", &o_->convert.dry_run,
           "Read only headers, write nothing, and print what would be done with each tensor");
    Text("--report", &o_->report, "FILE", "Also write the output of --json to this file");
    Group("Conversion");
    Text("--to", &o_->convert.to, "LAYOUT",
         "The layout; fp8-tiles is DeepSeek's, and bf16, f16 and f32 decode")
        ->required();
    last().choices = checkpoints::TargetNames();
    Group("Tensors");
    Switch("--all", &o_->all,
           "Convert every float tensor of two dimensions, including embeddings and head");
    return *this;
  }

  Flags& Against() {
    Group("Comparison");
    Text("--against", &o_->against, "FILE",
         "The original file: show the difference between it and the quantized tensors");
    return *this;
  }

  Flags& Table(const std::vector<std::string>& orders) {
    Group("Printing");
    OneOf("--sort", &o_->sort, "ORDER",
          "Order of the rows; the worst or largest first (default file)", orders);
    Switch("--details", &o_->details, "Print several lines for each tensor instead of a row");
    return *this;
  }

  Flags& Bins() {
    Group("Printing");
    Number("--bins", &o_->bins, 0, 1000,
           "With --details: the lines of a histogram (default 16; 0: no histograms)");
    return *this;
  }

  Flags& Engine() {
    Address("Send the tensors to this server instead of computing in this process");
    return Computing();
  }

  Flags& Computing() {
    Group("Computing");
    Variable(Number("--threads", &o_->threads, 0, 1024,
                    "Threads that compute in this process; 0 (default): one per CPU"),
             "QUANTD_THREADS");
    Variable(Text("--simd", &o_->simd, "NAME",
                  "Instruction set for computing in this process: avx512, avx2, neon, scalar ... "
                  "Default: the best one"),
             "QUANTD_SIMD");
    return *this;
  }

  Flags& Address(const char* what) {
    Group("Server");
    Variable(Text("--address", &o_->address, "HOST:PORT", absl::StrCat(what, "; or unix:/path")),
             "QUANTD_ADDRESS");
    Add(command_->add_option("--timeout", o_->timeout)->check(Seconds()), "SECONDS",
        "Seconds that a call to the server may take (default 300)");
    Access();
    return *this;
  }

  Flags& Top() {
    Group("Arguments");
    const char* const what = "The server's HTTP port (--http_listen)";
    Add(command_->add_option("address", o_->address)->required(), "HOST:PORT", what);
    Group("Printing");
    Switch("--once", &o_->once, "Show it once");
    Switch("--json", &o_->json, "Print the server's /status.json");
    Group("Server");
    Access();
    return *this;
  }

  Flags& Service() {
    Group("Server");
    Text("--service", &o_->service, "NAME",
         "Service to ask about, such as quantd.v1.QuantizationService (default: the server)");
    return *this;
  }

  Flags& Shell() {
    Group("Arguments");
    const std::vector<std::string> shells = {"bash", "zsh"};
    Add(command_->add_option("shell", o_->shell)->required()->transform(Choices(shells)), "SHELL",
        "The shell");
    last().choices = shells;
    return *this;
  }

  Flags& Printing() {
    Group("Printing");
    Switch("--json", &o_->json, "Print one JSON document instead of text");
    Switch("--quiet", &o_->quiet, "Print errors only; no progress bar");
    return *this;
  }

 private:
  // The flags of TLS and tokens.
  void Access() {
    Variable(Text("--tls_ca", &o_->tls_ca, "FILE",
                  "Use TLS: PEM file with the authority that signed the server's certificate"),
             "QUANTD_TLS_CA");
    Variable(Text("--tls_cert", &o_->tls_cert, "FILE",
                  "This client's certificate, a PEM file, with --tls_key"),
             "QUANTD_TLS_CERT");
    Variable(Text("--tls_key", &o_->tls_key, "FILE", "The key of --tls_cert, a PEM file"),
             "QUANTD_TLS_KEY");
    Variable(Text("--auth_token_file", &o_->auth_token_file, "FILE",
                  "File with the token that the server requires; without TLS it is sent to this "
                  "machine only"),
             "QUANTD_AUTH_TOKEN_FILE");
    Switch("--allow_insecure_token", &o_->allow_insecure_token,
           "Send the token to another machine without TLS");
  }

  // The following flags are in this group of the page.
  void Group(const char* title) {
    std::vector<GroupPage>& groups = page_->groups;
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const GroupPage& group) { return group.title == title; });
    group_ = static_cast<size_t>(known - groups.begin());
    if (known == groups.end()) groups.push_back({title, {}});
  }

  // Adds it to the page.
  CLI::Option* Add(CLI::Option* option, const char* argument, std::string text) {
    FlagPage flag;
    if (!option->get_positional()) {
      for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) {
        if (!absl::StartsWith(name, "no_")) flag.names.push_back("--" + name);
      }
    }
    flag.argument = argument;
    flag.text = std::move(text);
    page_->groups[group_].flags.push_back(std::move(flag));
    return option;
  }

  CLI::Option* Text(const char* names, std::string* value, const char* argument, std::string text) {
    return Add(command_->add_option(names, *value), argument, std::move(text));
  }

  // One of `choices`; in capitals, or with - for _, it is the same.
  CLI::Option* OneOf(const char* names, std::string* value, const char* argument, std::string text,
                     std::vector<std::string> choices) {
    CLI::Option* const option =
        Text(names, value, argument, std::move(text))->transform(Choices(choices));
    last().choices = std::move(choices);
    return option;
  }

  // `has_formats`: also the names of types with blocks and scales, such as mxfp8.
  void Type(std::string text, bool has_formats) {
    Text("--type", &o_->spec.type, "TYPE", std::move(text));
    last().choices = QuantizedTypeNames(has_formats);
  }

  CLI::Option* Number(const char* names, int64_t* value, int64_t least, int64_t most,
                      std::string text) {
    return Add(command_->add_option(names, *value)->check(Integer(least, most)), "N",
               std::move(text));
  }

  void Axis(std::string text) {
    Add(command_->add_option("--axis", o_->spec.axis)->check(Integer(INT64_MIN, INT64_MAX)), "N",
        std::move(text));
  }

  void List(const char* names, std::vector<int64_t>* values, std::string text) {
    Add(command_->add_option(names, *values)
            ->delimiter(',')
            ->check(Integer(INT64_MIN, INT64_MAX))
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll),
        "N,N...", std::move(text));
  }

  void Switch(const char* names, bool* value, std::string text) {
    Add(command_->add_flag(names, *value), "", std::move(text));
  }

  // The variable of the environment that means the same.
  void Variable(CLI::Option* option, const char* name) {
    option->envname(name);
    last().variable = name;
  }

  // The flag that was added last.
  FlagPage& last() { return page_->groups[group_].flags.back(); }

  CLI::App* const command_;
  Options* const o_;
  CommandPage* const page_;
  size_t group_ = 0;  // of the page
};

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
