#include "commands/flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands/presets.h"

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

}  // namespace

Flags& Flags::Input(const char* what) {
  command_->add_option("file", o_->input, what)->required()->type_name("FILE");
  return *this;
}

Flags& Flags::Output() {
  Text("-o,--output", &o_->output,
       "Output file: one .safetensors, or a .npy with further .npy files beside it")
      ->required();
  command_->add_flag("--force", o_->force, "Overwrite existing files (never the input)");
  Text("--report", &o_->report, "Also write the output of --json to this file");
  return *this;
}

Flags& Flags::Choice() {
  Text("--only", &o_->only,
       "Process only tensors whose name matches this regular expression (RE2) anywhere");
  Text("--skip", &o_->skip, "Do not process tensors whose name matches this regular expression");
  return *this;
}

Flags& Flags::All() {
  command_->add_flag(
      "--all", o_->all,
      "Also quantize tensors of fewer than two dimensions, such as biases and norms");
  return *this;
}

Flags& Flags::Granularity() {
  SpecFlags& spec = o_->spec;
  command_
      ->add_option("--axis", spec.axis,
                   "One scale per index along this dimension (counted from the end if negative); "
                   "with --block_size, the dimension that is cut into blocks")
      ->check(Integer(INT64_MIN, INT64_MAX));
  command_
      ->add_option("--block_size", spec.block_size,
                   "One scale per this many elements along --axis (default 1)")
      ->check(Integer(0, INT64_MAX));
  List("--block_shape", &spec.block_shape,
       "One scale per block of this shape, such as 128,128; -1: the whole dimension");
  return *this;
}

Flags& Flags::Finding() {
  SpecFlags& spec = o_->spec;
  Text("--type", &spec.type,
       "uint8 (default) int8 uint16 int16 uint4 int4 uint2 int2 float8e4m3fn float8e4m3fnuz "
       "float8e5m2 float8e5m2fnuz float6e2m3 float6e3m2 float4e2m1; or a format with blocks along "
       "the last dimension: mxfp8 mxfp8e5m2 mxfp6e2m3 mxfp6e3m2 mxfp4 mxint8 (32 elements, their "
       "scale a power of two), nvfp4 (16 elements)");
  command_->add_flag("--symmetric", spec.symmetric,
                     "A range centred on zero, without a zero point");
  Text("--scale_type", &spec.scale_type,
       "Type of the scale: float (default) float16 bfloat16 float8e8m0 float8e4m3fn");
  command_->add_flag("--saturate,!--nosaturate", spec.saturate,
                     "float8: values beyond the largest become the largest (default); "
                     "--nosaturate: infinity or NaN");
  Text("--non_finite", &spec.non_finite,
       "NaN and infinities in x: reject (an error, default), or ignore (left out of the range)")
      ->check(CLI::IsMember({"reject", "ignore"}));
  return *this;
}

Flags& Flags::Given() {
  SpecFlags& spec = o_->spec;
  Text("--scale", &spec.scale,
       "The scale, in place of one from the data or the file: a number, one number per index along "
       "--axis (0.1,0.2), or a .npy");
  Text("--zero_point", &spec.zero_point, "The zero point for --scale, in the same form");
  return *this;
}

Flags& Flags::Rounding() {
  SpecFlags& spec = o_->spec;
  Text("--precision", &spec.precision,
       "With --scale: the type in which x / scale is computed: float float16 bfloat16");
  Text("--zero_point_order", &spec.zero_point_order,
       "With --scale: when the zero point is added: after_rounding (ONNX, default) or "
       "before_rounding (oneDNN)")
      ->check(CLI::IsMember({"after_rounding", "before_rounding"}));
  command_->add_flag(
      "--report_error,!--noreport_error", spec.report_error,
      "Report the difference between y and x (default); --noreport_error saves a little time");
  return *this;
}

Flags& Flags::Back() {
  SpecFlags& spec = o_->spec;
  Text("--output_type", &o_->output_type,
       "Type of y: float float16 bfloat16. Default: the original type; with --scale, the scale's "
       "type if it is one of these, else float");
  Text("--tensor_scale", &spec.tensor_scale, "With --scale: NVFP4's second scale, a number");
  Text("--type", &spec.type, "With --scale: type of x, if the file does not have it");
  List("--shape", &o_->shape,
       "With --type: shape of x, if the file does not have it (packed types), such as 1000,768");
  return *this;
}

Flags& Flags::Embeddings() {
  EmbeddingFlags& e = o_->embeddings;
  Text("--preset", &e.preset,
       absl::StrCat("Vector database whose format to use: ", absl::StrJoin(PresetNames(), " ")))
      ->required();
  Text("--ranges", &e.ranges,
       "For the int8 and uint8 of sentence-transformers: a .npy of two rows, the lowest and the "
       "highest value of each dimension, float; or the output of calibrate --axis=-1");
  command_->add_flag(
      "--calibrate", e.calibrate,
      "Instead of --ranges: compute the ranges from the file, and write them to --ranges_out");
  Text("--ranges_out,--ranges-out", &e.ranges_out,
       "With --calibrate: a .safetensors; by default the output's name with .ranges.safetensors");
  command_
      ->add_option(
          "--dimensions", e.dimensions,
          "How many values of each embedding are used, from its beginning; 0 (default): all")
      ->check(Integer(0, INT64_MAX));
  command_->add_flag("--normalize", e.normalize, "Divide each embedding by its length first");
  Text("--non_finite", &o_->spec.non_finite,
       "NaN and infinities: reject (an error, default), or ignore (encoded as the format defines)")
      ->check(CLI::IsMember({"reject", "ignore"}));
  command_->add_flag("--report_error,!--noreport_error", o_->spec.report_error,
                     "Report the difference between the codes and x (default, except for bits)");
  return *this;
}

Flags& Flags::Inputs(const char* what) {
  command_->add_option("file", o_->calibrate.inputs, what)
      ->type_name("FILE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Flags& Flags::Calibrate() {
  CalibrateFlags& c = o_->calibrate;
  Text("--method", &c.method,
       "Range: min-max (default): all values; percentile: all but the outermost; mse: the smallest "
       "squared error; entropy: the least information lost")
      ->check(CLI::IsMember({"min-max", "percentile", "mse", "entropy"}));
  Text("--type", &o_->spec.type, "The type that will be quantized to (default uint8)");
  command_
      ->add_option("--axis", o_->spec.axis,
                   "One scale per index along this dimension (counted from the end if negative); "
                   "default: one scale")
      ->check(Integer(INT64_MIN, INT64_MAX));
  command_->add_option(
      "--percentile", c.percentile,
      "With --method=percentile: the share of the values to keep, above 50 and at most 100 "
      "(default 99.99)");
  Text("--symmetry", &c.symmetry,
       "symmetric (around zero, without a zero point), or asymmetric (default for integers)")
      ->check(CLI::IsMember({"symmetric", "asymmetric"}));
  Text("--non_finite,--non-finite", &o_->spec.non_finite,
       "NaN and infinities: reject (an error, default), or ignore (counted and left out)")
      ->check(CLI::IsMember({"reject", "ignore"}));
  command_
      ->add_option(
          "--state", c.states,
          "The --state_out of another calibration, which is added to this one; may be repeated")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  Text("--state_out,--state-out", &c.state_out, "Write what was counted to this file, for --state");
  return *this;
}

Flags& Flags::Bins() {
  command_->add_option("--bins", o_->bins, "Number of lines of a histogram (default 16)")
      ->check(Integer(1, 1000));
  return *this;
}

Flags& Flags::Convert() {
  Text("-o,--output", &o_->output,
       "Output: a folder for a folder, a file for a file; for gguf always one .gguf")
      ->required();
  Text("--to", &o_->convert.to,
       "fp8-tiles (DeepSeek); compressed-tensors: with int8 int8-tensor int4-g128 int4-g32 "
       "int4-g128-asym int4-g32-asym fp8 fp8-tensor fp8-block nvfp4 mxfp4; gguf: with f16 bf16 "
       "q8_0 q4_0 q4_1 q5_0 q5_1 mxfp4; bnb: with nf4 nf4-double fp4 fp4-double int8; or, to "
       "decode, bf16 f16 f32")
      ->required();
  command_->add_flag("--all", o_->all,
                     "Convert every float tensor of two dimensions, including embeddings and head");
  command_->add_flag(
      "--dry_run,--dry-run", o_->convert.dry_run,
      "Read only headers, write nothing, and print what would be done with each tensor");
  command_->add_flag("--resume", o_->convert.resume,
                     "Continue with the OUT.partial of a run that was interrupted");
  command_->add_flag("--force", o_->force,
                     "Overwrite OUT (never the model), and discard the OUT.partial of another run");
  Text("--report", &o_->report, "Also write the output of --json to this file");
  return *this;
}

Flags& Flags::Engine() {
  Address("Send the tensors to this server instead of computing in this process");
  return Computing();
}

Flags& Flags::Computing() {
  command_
      ->add_option("--threads", o_->threads,
                   "Threads that compute in this process; 0 (default): one per CPU")
      ->envname("QUANTD_THREADS")
      ->check(Integer(0, 1024));
  Text("--simd", &o_->simd,
       "Instruction set for computing in this process: avx512 avx2 neon scalar. Default: the best "
       "one")
      ->envname("QUANTD_SIMD");
  return *this;
}

Flags& Flags::Address(const char* what) {
  Text("--address", &o_->address, absl::StrCat(what, ": host:port, or unix:/path"))
      ->envname("QUANTD_ADDRESS");
  command_
      ->add_option("--timeout", o_->timeout,
                   "Seconds that a call to the server may take (default 300)")
      ->check(Seconds());
  Access();
  return *this;
}

Flags& Flags::Top() {
  command_->add_option("address", o_->address, "The server's HTTP port (--http_listen), HOST:PORT")
      ->required()
      ->type_name("HOST:PORT");
  command_->add_flag("--once", o_->once, "Show it once");
  command_->add_flag("--json", o_->json, "Print the server's /status.json");
  Access();
  return *this;
}

// The flags of TLS and tokens.
void Flags::Access() {
  Text("--tls_ca", &o_->tls_ca,
       "Use TLS: PEM file with the authority that signed the server's certificate")
      ->envname("QUANTD_TLS_CA");
  Text("--tls_cert", &o_->tls_cert, "This client's certificate, a PEM file, with --tls_key")
      ->envname("QUANTD_TLS_CERT");
  Text("--tls_key", &o_->tls_key, "The key of --tls_cert, a PEM file")->envname("QUANTD_TLS_KEY");
  Text("--auth_token_file", &o_->auth_token_file,
       "File with the token that the server requires; without TLS it is sent to this machine only")
      ->envname("QUANTD_AUTH_TOKEN_FILE");
  command_->add_flag("--allow_insecure_token", o_->allow_insecure_token,
                     "Send the token to another machine without TLS");
}

Flags& Flags::Printing() {
  command_->add_flag("--json", o_->json, "Print one JSON document instead of text");
  command_->add_flag("--quiet", o_->quiet, "Print errors only; no progress bar");
  return *this;
}

CLI::Option* Flags::Text(const std::string& name, std::string* value, const std::string& what) {
  return command_->add_option(name, *value, what);
}

void Flags::List(const char* name, std::vector<int64_t>* values, const char* what) {
  command_->add_option(name, *values, what)
      ->delimiter(',')
      ->check(Integer(INT64_MIN, INT64_MAX))
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace quantd::cli
