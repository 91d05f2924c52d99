#include "commands/flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "checkpoints/target.h"
#include "commands/presets.h"
#include "files/closest_name.h"

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

}  // namespace

Flags& Flags::Input(const char* what) {
  Group("Arguments");
  Add(command_->add_option("file", o_->input, what)->required(), "FILE", what);
  return *this;
}

Flags& Flags::Inputs(const char* what) {
  Group("Arguments");
  Add(command_->add_option("file", o_->calibrate.inputs, what)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll),
      "FILE...", what);
  return *this;
}

Flags& Flags::Output() {
  Group("Output");
  Text("-o,--output", &o_->output, "FILE",
       "Output file: one .safetensors, or a .npy with further .npy files beside it")
      ->required();
  Switch("--force", &o_->force, "Overwrite existing files (never the input)");
  Text("--report", &o_->report, "FILE", "Also write the output of --json to this file");
  return *this;
}

Flags& Flags::Choice() {
  Group("Tensors");
  Text("--only", &o_->only, "REGEX",
       "Process only tensors whose name matches this regular expression (RE2) anywhere");
  Text("--skip", &o_->skip, "REGEX",
       "Do not process tensors whose name matches this regular expression");
  return *this;
}

Flags& Flags::All() {
  Group("Tensors");
  Switch("--all", &o_->all,
         "Also quantize tensors of fewer than two dimensions, such as biases and norms");
  return *this;
}

Flags& Flags::Granularity() {
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

Flags& Flags::Finding() {
  Group("Codes and scales");
  SpecFlags& spec = o_->spec;
  Type(
      "Type of the codes (default uint8, with --symmetric int8); the formats mx... and nvfp4 have "
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

Flags& Flags::Given() {
  Group("Given scales");
  Text("--scale", &o_->spec.scale, "NUMBERS",
       "The scale, in place of one from the data or the file: a number, one number per index along "
       "--axis (0.1,0.2), or a .npy");
  Text("--zero_point", &o_->spec.zero_point, "NUMBERS",
       "The zero point for --scale, in the same form; without --type, a .npy's type is that of the "
       "codes");
  return *this;
}

Flags& Flags::Calibrated() {
  Group("Given scales");
  Text("--calibration", &o_->calibration, "FILE",
       "Scale, zero point, type and axis as quantctl calibrate wrote them, a .safetensors");
  return *this;
}

Flags& Flags::Rounding() {
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

Flags& Flags::Back() {
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

Flags& Flags::Embeddings() {
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
  OneOf("--non_finite", &o_->spec.non_finite, "ACTION",
        "NaN and infinities: an error (reject, default), or encoded as the format defines (ignore)",
        {"reject", "ignore"});
  Switch("--report_error,!--noreport_error,!--no_report_error", &o_->spec.report_error,
         "Report the difference between the codes and x (default, except for bits)");
  return *this;
}

Flags& Flags::Calibrate() {
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

Flags& Flags::Convert() {
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

Flags& Flags::Against() {
  Group("Comparison");
  Text("--against", &o_->against, "FILE",
       "The original file: show the difference between it and the quantized tensors");
  return *this;
}

Flags& Flags::Table(const std::vector<std::string>& orders) {
  Group("Printing");
  OneOf("--sort", &o_->sort, "ORDER",
        "Order of the rows; the worst or largest first (default file)", orders);
  Switch("--details", &o_->details, "Print several lines for each tensor instead of a row");
  return *this;
}

Flags& Flags::Bins() {
  Group("Printing");
  Number("--bins", &o_->bins, 0, 1000,
         "With --details: the lines of a histogram (default 16; 0: no histograms)");
  return *this;
}

Flags& Flags::Engine() {
  Address("Send the tensors to this server instead of computing in this process");
  return Computing();
}

Flags& Flags::Computing() {
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

Flags& Flags::Address(const char* what) {
  Group("Server");
  Variable(Text("--address", &o_->address, "HOST:PORT", absl::StrCat(what, "; or unix:/path")),
           "QUANTD_ADDRESS");
  Add(command_->add_option("--timeout", o_->timeout)->check(Seconds()), "SECONDS",
      "Seconds that a call to the server may take (default 300)");
  Access();
  return *this;
}

Flags& Flags::Top() {
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

void Flags::Access() {
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

Flags& Flags::Service() {
  Group("Server");
  Text("--service", &o_->service, "NAME",
       "Service to ask about, such as quantd.v1.QuantizationService (default: the server)");
  return *this;
}

Flags& Flags::Shell() {
  Group("Arguments");
  const std::vector<std::string> shells = {"bash", "zsh"};
  Add(command_->add_option("shell", o_->shell)->required()->transform(Choices(shells)), "SHELL",
      "The shell");
  last().choices = shells;
  return *this;
}

Flags& Flags::Printing() {
  Group("Printing");
  Switch("--json", &o_->json, "Print one JSON document instead of text");
  Switch("--quiet", &o_->quiet, "Print errors only; no progress bar");
  return *this;
}

void Flags::Group(const char* title) {
  std::vector<GroupPage>& groups = page_->groups;
  const auto known = std::find_if(groups.begin(), groups.end(),
                                  [&](const GroupPage& group) { return group.title == title; });
  group_ = static_cast<size_t>(known - groups.begin());
  if (known == groups.end()) groups.push_back({title, {}});
}

CLI::Option* Flags::Add(CLI::Option* option, const char* argument, std::string text) {
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

CLI::Option* Flags::Text(const char* names, std::string* value, const char* argument,
                         std::string text) {
  return Add(command_->add_option(names, *value), argument, std::move(text));
}

CLI::Option* Flags::OneOf(const char* names, std::string* value, const char* argument,
                          std::string text, std::vector<std::string> choices) {
  CLI::Option* const option =
      Text(names, value, argument, std::move(text))->transform(Choices(choices));
  last().choices = std::move(choices);
  return option;
}

void Flags::Type(std::string text, bool has_formats) {
  Text("--type", &o_->spec.type, "TYPE", std::move(text));
  last().choices = QuantizedTypeNames(has_formats);
}

CLI::Option* Flags::Number(const char* names, int64_t* value, int64_t least, int64_t most,
                           std::string text) {
  return Add(command_->add_option(names, *value)->check(Integer(least, most)), "N",
             std::move(text));
}

void Flags::Axis(std::string text) {
  Add(command_->add_option("--axis", o_->spec.axis)->check(Integer(INT64_MIN, INT64_MAX)), "N",
      std::move(text));
}

void Flags::List(const char* names, std::vector<int64_t>* values, std::string text) {
  Add(command_->add_option(names, *values)
          ->delimiter(',')
          ->check(Integer(INT64_MIN, INT64_MAX))
          ->allow_extra_args(false)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll),
      "N,N...", std::move(text));
}

void Flags::Switch(const char* names, bool* value, std::string text) {
  Add(command_->add_flag(names, *value), "", std::move(text));
}

void Flags::Variable(CLI::Option* option, const char* name) {
  option->envname(name);
  last().variable = name;
}

}  // namespace quantd::cli
