#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "commands/commands.h"
#include "engine/errors.h"
#include "files/mapped_file.h"
#include "status_macros.h"

namespace quantd::cli {

client::ClientOptions ClientOptionsOf(const Options& options, absl::Duration timeout) {
  client::ClientOptions result;
  result.timeout = timeout;
  result.tls = {options.tls_ca, options.tls_cert, options.tls_key};
  result.auth_token_file = options.auth_token_file;
  result.allow_insecure_token = options.allow_insecure_token;
  return result;
}

absl::StatusOr<std::unique_ptr<Engine>> EngineOf(const Options& options) {
  if (options.address.empty()) return MakeLocalEngine(options.threads, options.simd);
  return MakeRemoteEngine(options.address,
                          ClientOptionsOf(options, absl::Seconds(options.timeout)));
}

absl::StatusOr<Choice> ChoiceOf(const Options& options) {
  return Choice::Of(options.only, options.skip);
}

std::vector<NamedFile> OutputsOf(const std::vector<std::string>& paths) {
  std::vector<NamedFile> outputs;
  for (const std::string& path : paths) outputs.push_back({"--output", path});
  return outputs;
}

absl::Status CheckFiles(const Options& options, std::vector<NamedFile> outputs,
                        std::vector<NamedFile> inputs) {
  const auto add = [](const char* flag, const std::string& path, std::vector<NamedFile>* files) {
    if (!path.empty()) files->push_back({flag, path});
  };
  add("--report", options.report, &outputs);
  add("--state_out", options.calibrate.state_out, &outputs);
  add("FILE", options.input, &inputs);
  if (absl::EndsWithIgnoreCase(options.input, ".npy")) {
    add("FILE", FilesOfOutput(options.input, {}).back(), &inputs);  // its description
  }
  for (const std::string& path : options.calibrate.inputs) add("FILE", path, &inputs);
  for (const std::string& path : options.calibrate.states) add("--state", path, &inputs);
  add("--ranges", options.embeddings.ranges, &inputs);
  add("--calibration", options.calibration, &inputs);
  const SpecFlags& spec = options.spec;
  const NamedFile operands[] = {{"--scale", spec.scale},
                                {"--zero_point", spec.zero_point},
                                {"--tensor_scale", spec.tensor_scale}};
  for (const NamedFile& operand : operands) {  // others are numbers
    if (absl::EndsWithIgnoreCase(operand.path, ".npy")) inputs.push_back(operand);
  }
  add("--tls_ca", options.tls_ca, &inputs);
  add("--tls_cert", options.tls_cert, &inputs);
  add("--tls_key", options.tls_key, &inputs);
  add("--auth_token_file", options.auth_token_file, &inputs);
  absl::Status status = CheckApart(inputs, outputs);
  for (const NamedFile& output : outputs) {
    if (status.ok()) status = CheckMayWrite(output.path, options.force);
  }
  return status;
}

absl::Status Begin(const Options& options, std::vector<NamedFile> inputs, Output* output) {
  absl::Status status = CheckFiles(options, OutputsOf(output->Files()), std::move(inputs));
  return status.ok() ? output->Create(options.force) : status;
}

absl::Status Finish(const Options& options, Output* output, const Json& document,
                    const std::string& text) {
  if (!options.report.empty()) output->AddText(options.report, Dump(document));
  QUANTD_RETURN_IF_ERROR(output->Commit());
  if (options.json) {
    std::fputs(Dump(document).c_str(), stdout);
  } else if (!options.quiet) {
    std::fputs(absl::StrCat(text, "wrote ", options.output, "\n").c_str(), stdout);
  }
  return absl::OkStatus();
}

void CopyTensors(const TensorFile& file, const TensorCopies& copies, Output* output) {
  for (const auto& [tensor, index] : copies) {
    std::ranges::copy(file.Bytes(*tensor), output->bytes(index).begin());
  }
}

absl::Status Measure(Engine& engine, const char* operation, const std::string& name,
                     absl::Time opened, const TensorView& x, absl::Span<uint8_t> y,
                     absl::FunctionRef<absl::Status()> run, TensorReport* report) {
  PopulateToRead(x.bytes);
  PopulateToWrite(y);
  const absl::Time start = absl::Now();
  if (const absl::Status status = run(); !status.ok()) {
    return OperationError(status, operation, name);
  }
  report->seconds = absl::ToDoubleSeconds(absl::Now() - start);
  report->server_seconds = engine.TakeServerSeconds();
  report->file_seconds = absl::ToDoubleSeconds(start - opened);
  report->name = name;
  report->input_type = x.data_type;
  report->shape = x.shape;
  report->bytes_before = x.bytes.size();
  return absl::OkStatus();
}

}  // namespace quantd::cli
