#include "commands/options.h"

#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands/presets.h"
#include "files/closest_name.h"

namespace quantd::cli {
namespace {

constexpr char kExitCodes[] =
    "Exit code: 0 done; 1 a tensor cannot be quantized so, or the server said no or cannot be\n"
    "reached; 2 wrong usage, or a file that cannot be read or written; 128 + n ended by signal n,\n"
    "with nothing half written. Errors are one line on stderr.";

// What CLI11 does not see: numbers that are too large are not the largest, and NaN is none.
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
        return good ? std::string() : absl::StrCat(text, " is no number of seconds");
      },
      "");
}

// Adds flags to a command. The texts are what `quantctl COMMAND --help` prints.
class Flags {
 public:
  Flags(CLI::App* command, Options* options) : command_(command), o_(options) {}

  Flags& Input(const char* what) {
    command_->add_option("file", o_->input, what)->required()->type_name("FILE");
    return *this;
  }
  Flags& Output() {
    Text("-o,--output", &o_->output,
         "Where to write: a .safetensors, which holds everything, or a .npy with others beside it")
        ->required();
    command_->add_flag("--force", o_->force, "Write over files that exist (never over the input)");
    Text("--report", &o_->report, "Write what --json prints to this file as well");
    return *this;
  }
  Flags& Choice() {
    Text("--only", &o_->only,
         "Work on tensors whose name has a match of this regular expression (RE2)");
    Text("--skip", &o_->skip, "Leave alone those whose name has a match of this one");
    return *this;
  }
  Flags& All() {
    command_->add_flag("--all", o_->all,
                       "Also tensors of fewer than two dimensions, such as biases and norms");
    return *this;
  }
  Flags& Granularity() {
    MethodFlags& m = o_->method;
    command_
        ->add_option("--axis", m.axis,
                     "One scale for each index along this dimension (from the end when "
                     "negative); with --block_size the dimension that is cut into blocks")
        ->check(Integer(INT64_MIN, INT64_MAX));
    command_
        ->add_option("--block_size", m.block_size,
                     "One scale for this many elements along --axis (default 1)")
        ->check(Integer(0, INT64_MAX));
    List("--block_shape", &m.block_shape,
         "One scale for each block of this shape, such as 128,128; -1: the whole dimension");
    return *this;
  }
  Flags& Finding() {
    MethodFlags& m = o_->method;
    Text("--type", &m.type,
         "uint8 (default) int8 uint16 int16 uint4 int4 uint2 int2 float8e4m3fn float8e4m3fnuz "
         "float8e5m2 float8e5m2fnuz float4e2m1; or a format of blocks along the last dimension: "
         "mxfp8 mxfp8e5m2 mxfp4 mxint8 (of 32, a power of two for each), nvfp4 (of 16)");
    command_->add_flag("--symmetric", m.symmetric, "A range centred on zero, without a zero point");
    Text("--scale_type", &m.scale_type,
         "Type of the scale: float (default) float16 bfloat16 float8e8m0 float8e4m3fn");
    command_->add_flag("--saturate,!--nosaturate", m.saturate,
                       "float8: values past the largest become the largest (default); "
                       "--nosaturate: infinity or NaN");
    Text("--non_finite", &m.non_finite,
         "NaN and infinities in x: reject (an error, default), or ignore (they take no part in the "
         "range)")
        ->check(CLI::IsMember({"reject", "ignore"}));
    return *this;
  }
  Flags& Given() {
    MethodFlags& m = o_->method;
    Text("--scale", &m.scale,
         "The scale, instead of what the data or the file says: a number, one for each index along "
         "--axis (0.1,0.2), or a .npy");
    Text("--zero_point", &m.zero_point, "The zero point for --scale, in the same form");
    return *this;
  }
  Flags& Rounding() {
    MethodFlags& m = o_->method;
    Text("--precision", &m.precision,
         "With --scale: type in which x / scale is computed: float float16 bfloat16");
    Text("--zero_point_order", &m.zero_point_order,
         "With --scale: when the zero point is added: after_rounding (ONNX, default) or "
         "before_rounding (oneDNN)")
        ->check(CLI::IsMember({"after_rounding", "before_rounding"}));
    command_->add_flag(
        "--report_error,!--noreport_error", m.report_error,
        "Measure how far y is from x (default); --noreport_error saves a little time");
    return *this;
  }
  Flags& Back() {
    MethodFlags& m = o_->method;
    Text("--output_type", &o_->output_type,
         "Type of y: float float16 bfloat16. Default: the original one; with --scale that of the "
         "scale if it is one of them, else float");
    Text("--tensor_scale", &m.tensor_scale, "With --scale: NVFP4's second scale, a number");
    Text("--type", &m.type, "With --scale: type of x where the file does not say it");
    List("--shape", &o_->shape,
         "With --type: shape of x where the file does not say it (packed types), such as 1000,768");
    return *this;
  }
  Flags& Embeddings() {
    EmbeddingFlags& e = o_->embeddings;
    Text("--preset", &e.preset, absl::StrCat("Whose codes: ", absl::StrJoin(PresetNames(), " ")))
        ->required();
    Text("--ranges", &e.ranges,
         "For the int8 and uint8 of sentence-transformers: a .npy of two rows, the lowest and the "
         "highest value of each dimension, float; or what calibrate --axis=-1 writes");
    command_->add_flag(
        "--calibrate", e.calibrate,
        "Instead of --ranges: find them in the file, and write them to --ranges_out");
    Text("--ranges_out,--ranges-out", &e.ranges_out,
         "With --calibrate: a .safetensors; default: the output's name with .ranges.safetensors");
    Column();
    command_
        ->add_option("--dimensions", e.dimensions,
                     "Use only the first so many values of each embedding; 0 (default): all")
        ->check(Integer(0, INT64_MAX));
    command_->add_flag("--normalize", e.normalize, "Divide each embedding by its length first");
    Text("--non_finite", &o_->method.non_finite,
         "NaN and infinities: reject (an error, default), or ignore (what the codes have for them)")
        ->check(CLI::IsMember({"reject", "ignore"}));
    command_->add_flag("--report_error,!--noreport_error", o_->method.report_error,
                       "Measure how far the codes are from x (default, but for bits)");
    return *this;
  }
  Flags& Column() {
    Text("--column", &o_->column,
         "Of a .jsonl of objects: the name of the array of numbers (default embedding)");
    return *this;
  }
  Flags& Inputs(const char* what) {
    command_->add_option("file", o_->calibrate.inputs, what)
        ->type_name("FILE")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    return *this;
  }
  Flags& Calibrate() {
    CalibrateFlags& c = o_->calibrate;
    Text("--method", &c.method,
         "Which range: min-max (default) all values; percentile all but the outermost; mse the "
         "smallest squared error; entropy the least information lost")
        ->check(CLI::IsMember({"min-max", "percentile", "mse", "entropy"}));
    Text("--type", &o_->method.type, "What will be quantized to (default uint8)");
    command_
        ->add_option("--axis", o_->method.axis,
                     "A scale for each index along this dimension, from the end when negative; "
                     "default: one for all")
        ->check(Integer(INT64_MIN, INT64_MAX));
    command_->add_option("--percentile", c.percentile,
                         "With --method=percentile: above 50, at most 100 (default 99.99)");
    Text("--symmetry", &c.symmetry,
         "symmetric (around zero, without a zero point), or asymmetric (default for integers)")
        ->check(CLI::IsMember({"symmetric", "asymmetric"}));
    Text("--non_finite,--non-finite", &o_->method.non_finite,
         "NaN and infinities: reject (an error, default), or ignore (counted and left out)")
        ->check(CLI::IsMember({"reject", "ignore"}));
    command_
        ->add_option("--state", c.states,
                     "What another calibration has seen (its --state_out), to be added; repeat it")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    Text("--state_out,--state-out", &c.state_out, "Write what was seen to this file");
    return Column();
  }
  Flags& Bins() {
    command_->add_option("--bins", o_->bins, "Lines of a histogram (default 16)")
        ->check(Integer(1, 1000));
    return *this;
  }
  Flags& Engine() {
    Address("Send the tensors to this server instead of computing here");
    command_
        ->add_option("--threads", o_->threads,
                     "Threads to compute with here; 0 (default): one a CPU")
        ->envname("QUANTD_THREADS")
        ->check(Integer(0, 1024));
    Text("--simd", &o_->simd,
         "Instruction set to compute with here: avx512 avx2 neon scalar. Default: the best")
        ->envname("QUANTD_SIMD");
    return *this;
  }
  Flags& Address(const char* what) {
    Text("--address", &o_->address, absl::StrCat(what, ": host:port, or unix:/path"))
        ->envname("QUANTD_ADDRESS");
    command_
        ->add_option("--timeout", o_->timeout,
                     "Seconds that a call to the server may take (default 300)")
        ->check(Seconds());
    Text("--tls_ca", &o_->tls_ca, "Speak TLS: PEM file with who signs the server's certificate")
        ->envname("QUANTD_TLS_CA");
    Text("--tls_cert", &o_->tls_cert, "This client's certificate, a PEM file, with --tls_key")
        ->envname("QUANTD_TLS_CERT");
    Text("--tls_key", &o_->tls_key, "Its key, a PEM file")->envname("QUANTD_TLS_KEY");
    Text("--auth_token_file", &o_->auth_token_file,
         "File with the token that the server wants; without TLS to this machine only")
        ->envname("QUANTD_AUTH_TOKEN_FILE");
    command_->add_flag("--allow_insecure_token", o_->allow_insecure_token,
                       "Send the token to another machine without TLS");
    return *this;
  }
  Flags& Printing() {
    command_->add_flag("--json", o_->json, "Print one JSON document instead of text");
    command_->add_flag("--quiet", o_->quiet, "Print nothing but errors; no progress bar");
    return *this;
  }
  CLI::Option* Text(const std::string& name, std::string* value, const std::string& what) {
    return command_->add_option(name, *value, what);
  }

 private:
  void List(const char* name, std::vector<int64_t>* values, const char* what) {
    command_->add_option(name, *values, what)
        ->delimiter(',')
        ->check(Integer(INT64_MIN, INT64_MAX))
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  CLI::App* const command_;
  Options* const o_;
};

// Every command with its flags, in the order of the help.
void AddCommands(CLI::App* app, Options* o) {
  const auto add = [&](const char* name, const char* what) {
    CLI::App* command = app->add_subcommand(name, what);
    command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    command->footer(kExitCodes);
    return Flags(command, o);
  };
  add("quantize",
      "Make a tensor file small: find scale and zero point in the data, or take them.\n\nOf a "
      ".safetensors, tensors of float, float16, bfloat16 or float64 (rounded to float first)\nand "
      "of two dimensions or more are quantized; the rest is copied, and listed with the "
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
      "Turn a quantized file back into floats, of the types that they had; the rest is copied.\n\n "
      " quantctl dequantize small.safetensors -o model.safetensors\n  quantctl dequantize y.npy -o "
      "x.npy --scale=0.02 --zero_point=128")
      .Input("What quantize wrote, or any tensor file together with --scale")
      .Output()
      .Back()
      .Choice()
      .Given()
      .Granularity()
      .Engine()
      .Printing();
  add("calibrate",
      "Find scale, zero point and range of one quantity in many files; neither their order nor how "
      "it\nis cut into files changes a bit.\n\n"
      "  quantctl calibrate batch-*.npy -o ranges.safetensors --method=percentile --type=int8\n"
      "  quantctl calibrate vectors.jsonl -o ranges.safetensors --axis=-1")
      .Inputs(".npy, .fvecs, .jsonl, or a .safetensors (one tensor, or those of --only)")
      .Output()
      .Calibrate()
      .Choice()
      .Engine()
      .Printing();
  add("embeddings",
      "embeddings quantize: make the codes that a vector database has for embeddings, as its "
      "library\nmakes them. The last dimension of the file's array is the embedding.\n\n"
      "  quantctl embeddings quantize vectors.npy -o codes.npy --preset=pgvector")
      .Input(
          "A .npy, a .fvecs (each embedding with its length before it), or a .jsonl (one a line)")
      .Output()
      .Embeddings()
      .Engine()
      .Printing();
  Flags inspect =
      add("inspect",
          "Show what a tensor file holds: types, shapes, statistics, histograms; of quantized "
          "tensors\ntheir type and granularity. With --type, the error that quantizing so would "
          "make.\n\n  quantctl inspect small.safetensors --against=model.safetensors");
  inspect.Input("A .npy or .safetensors")
      .Text("--against", &o->against,
            "The original file: show how far the quantized tensors are from it");
  inspect.Finding().Granularity().Bins().Choice().Engine().Printing();
  add("info", "What a server is and what it allows")
      .Address("The server; default: the first of QUANTD_LISTEN, else 127.0.0.1:50051")
      .Printing();
  add("health", "Exit 0 when a server is serving; for container health checks")
      .Address("The server; default: the first of QUANTD_LISTEN, else 127.0.0.1:50051")
      .Printing()
      .Text("--service", &o->service,
            "Service to ask about, such as quantd.v1.QuantizationService (default: the server)");
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

// Why an argument was not expected: a flag's name is misspelt, or there are too many files.
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
  CLI::App app("quantctl: quantizes tensor files (.npy, .safetensors), here or on a quantd server.",
               "quantctl");
  app.set_version_flag("--version", absl::StrCat("quantctl ", QUANTCTL_VERSION));
  app.set_help_flag("-h,--help", "Print this");
  app.require_subcommand(1);
  app.footer(absl::StrCat("quantctl COMMAND --help says more about each.\n\n", kExitCodes));
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
                                " is no command, embeddings quantize is one"),
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
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
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
