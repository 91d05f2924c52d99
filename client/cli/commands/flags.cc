// See flags.h.
#include "commands/flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands/presets.h"

namespace quantd::cli {
namespace {

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
       "Where to write: a .safetensors, which holds everything, or a .npy with others beside it")
      ->required();
  command_->add_flag("--force", o_->force, "Write over files that exist (never over the input)");
  Text("--report", &o_->report, "Write what --json prints to this file as well");
  return *this;
}

Flags& Flags::Choice() {
  Text("--only", &o_->only,
       "Work on tensors whose name has a match of this regular expression (RE2)");
  Text("--skip", &o_->skip, "Leave alone those whose name has a match of this one");
  return *this;
}

Flags& Flags::All() {
  command_->add_flag("--all", o_->all,
                     "Also tensors of fewer than two dimensions, such as biases and norms");
  return *this;
}

Flags& Flags::Granularity() {
  SpecFlags& m = o_->method;
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

Flags& Flags::Finding() {
  SpecFlags& m = o_->method;
  Text("--type", &m.type,
       "uint8 (default) int8 uint16 int16 uint4 int4 uint2 int2 float8e4m3fn float8e4m3fnuz "
       "float8e5m2 float8e5m2fnuz float6e2m3 float6e3m2 float4e2m1; or a format of blocks along "
       "the last dimension: mxfp8 mxfp8e5m2 mxfp6e2m3 mxfp6e3m2 mxfp4 mxint8 (of 32, a power of "
       "two for each), nvfp4 (of 16)");
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

Flags& Flags::Given() {
  SpecFlags& m = o_->method;
  Text("--scale", &m.scale,
       "The scale, instead of what the data or the file says: a number, one for each index along "
       "--axis (0.1,0.2), or a .npy");
  Text("--zero_point", &m.zero_point, "The zero point for --scale, in the same form");
  return *this;
}

Flags& Flags::Rounding() {
  SpecFlags& m = o_->method;
  Text("--precision", &m.precision,
       "With --scale: type in which x / scale is computed: float float16 bfloat16");
  Text("--zero_point_order", &m.zero_point_order,
       "With --scale: when the zero point is added: after_rounding (ONNX, default) or "
       "before_rounding (oneDNN)")
      ->check(CLI::IsMember({"after_rounding", "before_rounding"}));
  command_->add_flag("--report_error,!--noreport_error", m.report_error,
                     "Measure how far y is from x (default); --noreport_error saves a little time");
  return *this;
}

Flags& Flags::Back() {
  SpecFlags& m = o_->method;
  Text("--output_type", &o_->output_type,
       "Type of y: float float16 bfloat16. Default: the original one; with --scale that of the "
       "scale if it is one of them, else float");
  Text("--tensor_scale", &m.tensor_scale, "With --scale: NVFP4's second scale, a number");
  Text("--type", &m.type, "With --scale: type of x where the file does not say it");
  List("--shape", &o_->shape,
       "With --type: shape of x where the file does not say it (packed types), such as 1000,768");
  return *this;
}

Flags& Flags::Embeddings() {
  EmbeddingFlags& e = o_->embeddings;
  Text("--preset", &e.preset,
       absl::StrCat("Vector database whose format to use: ", absl::StrJoin(PresetNames(), " ")));
  Text("--ranges", &e.ranges,
       "For the int8 and uint8 of sentence-transformers: a .npy of two rows, the lowest and the "
       "highest value of each dimension, float; or what calibrate --axis=-1 writes");
  command_->add_flag("--calibrate", e.calibrate,
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

Flags& Flags::Column() {
  Text("--column", &o_->column,
       "Of a .jsonl of objects: the name of the array of numbers (default embedding)");
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

Flags& Flags::Stored() {
  StoredFlags& s = o_->stored;
  command_->add_option("word", s.words, "put: NAME [FILE]; get: REFERENCE; list: [PREFIX]")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  Text("--for", &s.kind, "put: quantize (default), which dequantize takes as well, or embeddings")
      ->check(CLI::IsMember({"quantize", "embeddings"}));
  Text("--type", &o_->method.type,
       "Type of y, and of --zero_point (default: what the FILE is for, else uint8)");
  Text("--preset", &o_->embeddings.preset,
       absl::StrCat("With --for=embeddings: vector database whose format to use: ",
                    absl::StrJoin(PresetNames(), " ")));
  command_
      ->add_option("--dimensions", o_->embeddings.dimensions,
                   "With --for=embeddings: use only the first so many values; 0 (default): all")
      ->check(Integer(0, INT64_MAX));
  command_->add_flag("--normalize", o_->embeddings.normalize,
                     "With --for=embeddings: divide each embedding by its length first");
  Text("-o,--output", &o_->output, "get: where to write the set, as the server has it");
  command_->add_flag("--force", o_->force, "get: write over a file that exists");
  return *this;
}

Flags& Flags::Named() {
  Text("--parameters", &o_->stored.reference,
       "With --address: stored parameters (quantctl parameters) in place of the flags that say the "
       "same; each tensor goes in one message");
  return *this;
}

Flags& Flags::Bins() {
  command_->add_option("--bins", o_->bins, "Lines of a histogram (default 16)")
      ->check(Integer(1, 1000));
  return *this;
}

Flags& Flags::Convert() {
  Text("-o,--output", &o_->output,
       "Where to write: a folder for a folder, a file for a file; for gguf: always one .gguf")
      ->required();
  Text("--to", &o_->convert.to,
       "fp8-tiles (DeepSeek); compressed-tensors: with int8 int8-tensor int4-g128 int4-g32 "
       "int4-g128-asym int4-g32-asym fp8 fp8-tensor fp8-block nvfp4 mxfp4; gguf: with f16 bf16 "
       "q8_0 q4_0 q4_1 q5_0 q5_1 mxfp4; bnb: with nf4 nf4-double fp4 fp4-double int8; or bf16 f16 "
       "f32: decode")
      ->required();
  command_->add_flag(
      "--all", o_->all,
      "Every float tensor of two dimensions, whatever its name: embeddings and head, "
      "too");
  command_->add_flag("--dry_run,--dry-run", o_->convert.dry_run,
                     "Read headers alone, write nothing, and print what would become of each "
                     "tensor");
  command_->add_flag("--resume", o_->convert.resume,
                     "Go on with OUT.partial, which a run that was ended has left");
  command_->add_flag("--force", o_->force,
                     "Write over OUT (never over the model), and begin anew where OUT.partial is");
  Text("--report", &o_->report, "Write what --json prints to this file as well");
  return *this;
}

Flags& Flags::Kit() {
  command_->add_option("server", o_->server, "The server; default: that of --address")
      ->type_name("HOST:PORT");
  Text("--cases", &o_->cases,
       "Folder of the kit's cases: the unpacked quantd-conformance archive of a release, or what "
       "'python -m quantd.conformance export DIR' wrote; any folder of ONNX backend tests of the "
       "operators will do")
      ->required()
      ->type_name("DIR");
  Text("--only", &o_->only,
       "Cases whose family/name or rule has a match of this regular expression (RE2)");
  command_->add_flag("--exact", o_->exact,
                     "The oracle's answer bit for bit in what is open, too, and in the NaNs of "
                     "float8: what quantd promises");
  return *this;
}

Flags& Flags::Engine() {
  Address("Send the tensors to this server instead of computing here");
  return Computing();
}

Flags& Flags::Computing() {
  command_
      ->add_option("--threads", o_->threads, "Threads to compute with here; 0 (default): one a CPU")
      ->envname("QUANTD_THREADS")
      ->check(Integer(0, 1024));
  Text("--simd", &o_->simd,
       "Instruction set to compute with here: avx512 avx2 neon scalar. Default: the best")
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

Flags& Flags::Printing() {
  command_->add_flag("--json", o_->json, "Print one JSON document instead of text");
  command_->add_flag("--quiet", o_->quiet, "Print nothing but errors; no progress bar");
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
