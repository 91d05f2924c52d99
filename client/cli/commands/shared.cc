#include <sys/stat.h>

#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "commands/commands.h"

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
  return MakeRemoteEngine(options.address, ClientOptionsOf(options, absl::Seconds(options.timeout)),
                          options.stored.reference);
}

absl::StatusOr<StoredSet> StoredSetOf(const Options& options, bool others) {
  if (options.address.empty()) {
    return absl::InvalidArgumentError("--parameters is for a server: it needs --address");
  }
  if (others) {
    return absl::InvalidArgumentError(
        "--parameters says how to quantize: leave out either it or the flags that say so");
  }
  return ReadStoredSet(options.stored.reference, options.address,
                       ClientOptionsOf(options, absl::Seconds(options.timeout)));
}

absl::StatusOr<Choice> ChoiceOf(const Options& options) {
  return Choice::Of(options.only, options.skip);
}

absl::Status Begin(const Options& options, const std::vector<FileId>& others, Output* output) {
  OverwriteRules rules{options.force, others};
  const SpecFlags& method = options.method;
  for (const std::string* path : {&options.input, &options.against, &method.scale,
                                  &method.zero_point, &method.tensor_scale}) {
    struct stat status;
    if (stat(path->c_str(), &status) == 0) rules.inputs.push_back({status.st_dev, status.st_ino});
  }
  if (!options.report.empty()) output->AddText(options.report, "");
  return output->Create(rules);
}

absl::Status Finish(const Options& options, Output* output, const Json& document,
                    const std::string& text) {
  if (!options.report.empty()) output->AddText(options.report, Dump(document));
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  if (options.json) {
    std::fputs(Dump(document).c_str(), stdout);
  } else if (!options.quiet) {
    std::fputs(absl::StrCat(text, "wrote ", options.output, "\n").c_str(), stdout);
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
