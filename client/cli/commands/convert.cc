// quantctl convert: converts models to and from the layouts of other software (client/checkpoints).
#include "checkpoints/convert.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "checkpoints/errors.h"
#include "commands/commands.h"
#include "commands/terminal.h"
#include "engine/errors.h"
#include "files/mapped_file.h"
#include "quantd/executor.h"
#include "quantd/targets.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

absl::Status CommandError(const absl::Status& status) {
  return checkpoints::IsWeightError(status) ? AsOperationError(status) : status;
}

absl::Status WriteReport(const Options& options, const std::string& text) {
  if (options.report.empty()) return absl::OkStatus();
  OutputFile file;
  QUANTD_RETURN_IF_ERROR(file.Create(options.report, text.size(), options.force));
  text.copy(reinterpret_cast<char*>(file.bytes().data()), text.size());
  absl::Status status = file.Sync();
  return status.ok() ? file.Publish() : status;
}

}  // namespace

absl::Status RunConvert(const Options& options) {
  absl::Status status = CheckEnvironmentTarget();
  if (status.ok() && !options.simd.empty()) status = SelectTarget(options.simd);
  if (!status.ok()) return status;
  checkpoints::ConvertOptions what;
  what.model = options.input;
  what.out = options.output;
  what.to = options.convert.to;
  what.only = options.only;
  what.skip = options.skip;
  what.all = options.all;
  what.resume = options.convert.resume;
  what.force = options.force;
  what.report = options.report;
  if (!what.report.empty()) status = CheckMayWrite(what.report, options.force);
  if (!status.ok()) return status;
  if (options.convert.dry_run) {
    const absl::StatusOr<checkpoints::Report> report = checkpoints::DryRun(what);
    if (!report.ok()) return CommandError(report.status());
    if (status = WriteReport(options, report->Json()); !status.ok()) return status;
    if (options.json || !options.quiet) {
      std::fputs((options.json ? report->Json() : report->Text()).c_str(), stdout);
    }
    return absl::OkStatus();
  }
  const absl::Time start = absl::Now();
  absl::StatusOr<checkpoints::Report> report;
  {
    Progress progress(!options.quiet, 0, ElsewhereShown::kLines);
    const Executor executor(options.threads);
    report = checkpoints::Convert(
        what, executor, [] { return false; },
        [&progress](uint64_t done, uint64_t total, absl::string_view file) {
          progress.SetLabel(file);
          progress.Set(done, total);
        });
  }
  if (!report.ok()) return CommandError(report.status());
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const auto member = [](absl::string_view name, const Json& value) {
    return absl::StrCat("  \"", name,
                        "\": ", value.dump(-1, ' ', false, Json::error_handler_t::replace), ",\n");
  };
  const std::string json =
      report->Json(absl::StrCat(member("input", options.input), member("output", options.output),
                                member("layout", options.convert.to), member("seconds", seconds)));
  if (status = WriteReport(options, json); !status.ok()) return status;
  if (options.json) {
    std::fputs(json.c_str(), stdout);
  } else if (!options.quiet) {
    std::fputs(absl::StrCat(report->Text(), "wrote ", options.output, "\n").c_str(), stdout);
  }
  return absl::OkStatus();
}

}  // namespace quantd::cli
