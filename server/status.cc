#include "server/status.h"

#include <openssl/sha.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "quantd/targets.h"
#include "quantd/v1/quantization.pb.h"
#include "server/metrics/process.h"
#include "server/status_page.h"

namespace quantd::server {
namespace {

using Json = nlohmann::ordered_json;

int64_t Whole(double number) { return static_cast<int64_t>(number); }

// Those that are not 0: {"queue_full": 3}.
template <typename Names, typename Counts>
Json Counted(const Names& names, const Counts& counts) {
  Json object = Json::object();
  for (size_t i = 0; i < names.size(); ++i) {
    if (counts[i] > 0) object[std::string(names[i])] = Whole(static_cast<double>(counts[i]));
  }
  return object;
}

Json OfMethod(const wire::MethodInfo& info, const metrics::Metrics& metrics) {
  const metrics::MethodMetrics& counts = metrics.method(info.method);
  Json codes = Json::object();
  uint64_t ended = 0;
  for (size_t code = 0; code < metrics::kCodes; ++code) {
    const uint64_t count = counts.handled[code].value();
    ended += count;
    if (count > 0) codes[std::string(metrics::CodeName(code))] = count;
  }
  const prometheus::ClientMetric::Histogram time = counts.handling_seconds.Collect();
  Json buckets = Json::array();
  for (const auto& bucket : time.bucket) buckets.push_back(bucket.cumulative_count);
  // A call may begin between the two readings.
  const uint64_t started = std::max(counts.started.value(), ended);
  Json of = {
      {"method", info.name}, {"started", started}, {"open", started - ended}, {"codes", codes}};
  if (!info.operation.empty()) {
    const metrics::OperationMetrics& operation = metrics.operation(info.method);
    of["in_bytes"] = operation.bytes_in.value();
    of["out_bytes"] = operation.bytes_out.value();
  }
  of["handling"] = {
      {"count", time.sample_count}, {"sum_seconds", time.sample_sum}, {"buckets", buckets}};
  return of;
}

// "8 MiB", "3.2 s": by the end of a figure's name.
std::string Figure(absl::string_view name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number()) return value.dump();
  const auto number = value.get<double>();
  if (absl::EndsWith(name, "_seconds")) return absl::StrFormat("%.6g s", number);
  if (!absl::EndsWith(name, "_bytes") || number < 1024) return absl::StrCat(number);
  constexpr absl::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double of = number / 1024;
  for (; of >= 1024 && unit + 1 < std::size(kUnits); ++unit) of /= 1024;
  return absl::StrFormat("%.4g %s", of, kUnits[unit]);
}

// Any value as rows of a table: one for each figure, with its path as its name.
void AppendRows(const std::string& path, const Json& value, std::string& rows) {
  if (!value.is_structured()) {
    absl::StrAppend(&rows, "<tr><th scope=row>", absl::StrReplaceAll(path, {{"_", " "}}), "<td>",
                    absl::StrReplaceAll(Figure(path, value), {{"&", "&amp;"}, {"<", "&lt;"}}));
    return;
  }
  for (const auto& [key, part] : value.items()) {
    if (key == "buckets" || key == "bounds_seconds" || key == "method") continue;
    const std::string& name = part.contains("method") ? part["method"] : Json(key);
    AppendRows(absl::StrCat(path, path.empty() ? "" : " ", name), part, rows);
  }
}

// 'sha256-...' of what stands between <tag> and </tag> in the page.
std::string HashOf(absl::string_view tag) {
  const absl::string_view page = kStatusPage;
  const std::string open = absl::StrCat("<", tag, ">");
  const size_t begin = page.find(open) + open.size();
  const absl::string_view text =
      page.substr(begin, page.find(absl::StrCat("</", tag, ">")) - begin);
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash);
  return absl::StrCat("'sha256-",
                      absl::Base64Escape({reinterpret_cast<const char*>(hash), sizeof(hash)}), "'");
}

}  // namespace

std::string StatusJson(const Options& options, const metrics::Metrics& metrics,
                       const StatusFacts& facts) {
  const metrics::Readings now = metrics.Read();
  const metrics::ProcessStatus process = metrics::ReadProcessStatus();
  const std::chrono::duration<double> time = std::chrono::system_clock::now().time_since_epoch();
  Json methods = Json::array(), bounds = Json::array(), refused = Json::object();
  for (const wire::MethodInfo& info : wire::kMethods) methods.push_back(OfMethod(info, metrics));
  for (const auto& bucket : metrics.queue_seconds().Collect().bucket) {
    if (std::isfinite(bucket.upper_bound)) bounds.push_back(bucket.upper_bound);
  }
  const auto rejections = metrics.rejections();
  for (size_t i = 0; i < rejections.size(); ++i) {
    const std::string label(metrics::kRejections[i].label);
    if (rejections[i] > 0) refused[label] = rejections[i];
  }
  const Json status = {
      {"version", QUANTD_VERSION},
      {"target", CurrentTarget()},
      {"pid", getpid()},
      {"state", facts.state},
      {"uptime_seconds", time.count() - process.start_time_seconds},
      {"grpc_addresses", facts.grpc_addresses},
      {"threads", options.threads},
      {"event_loops", options.event_loops},
      {"limits",
       {{"max_message_bytes", options.memory.max_message},
        {"max_inflight_requests", options.max_inflight_requests},
        {"max_queued_requests", options.max_queued_requests},
        {"max_connections", options.max_connections},
        {"memory_bytes", options.memory.limit},
        {"request_bytes", options.memory.requests},
        {"receiving_bytes", options.memory.receiving}}},
      {"access",
       {{"tls", !options.tls_cert.empty()},
        {"client_certificates", !options.tls_client_ca.empty()},
        {"tokens", !options.auth_token_file.empty()},
        {"certificate_expires", Whole(now.certificate_expires)}}},
      {"now",
       {{"calls", Whole(now.calls)},
        {"connections", Whole(now.connections)},
        {"requests", Whole(now.inflight_requests)},
        {"request_bytes", Whole(now.inflight_bytes)},
        {"receiving_bytes", Whole(now.receiving_bytes)},
        {"pool_bytes", Whole(now.pool_bytes)},
        {"resident_bytes", Whole(process.resident_bytes)},
        {"shared_bytes", Whole(now.region_bytes)},
        {"busy_cores", Whole(now.busy_cores)},
        {"open_files", Whole(process.open_fds)}}},
      {"waiting",
       {{"to_be_received", Whole(now.waiting[0])},
        {"for_memory", Whole(now.waiting[1])},
        {"for_a_core", Whole(now.waiting[2])}}},
      {"cpu_seconds", process.cpu_seconds},
      {"connections_accepted", Whole(now.connections_accepted)},
      {"refused", refused},
      {"connections_ended", Counted(metrics::kConnectionEnds, now.connections_ended)},
      {"handshakes_refused", Counted(metrics::kHandshakeRefusals, now.handshakes_refused)},
      {"methods", methods},
      {"bounds_seconds", bounds}};
  // A path of a socket may be no UTF-8.
  return status.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string StatusPage(absl::string_view json) {
  std::string rows;
  AppendRows("", Json::parse(json), rows);
  return absl::StrReplaceAll(kStatusPage, {{"<!--rows-->", rows}});
}

const std::string& StatusPolicy() {
  static const auto* const policy = new std::string(absl::StrCat(
      "default-src 'none'; script-src ", HashOf("script"), "; style-src ", HashOf("style"),
      "; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'"));
  return *policy;
}

std::string ServerInfo(const Options& options) {
  v1::GetServerInfoResponse info;
  info.set_version(QUANTD_VERSION);
  info.set_target(std::string(CurrentTarget()));
  for (const std::string& target : SupportedTargets()) info.add_supported_targets(target);
  info.set_threads(options.threads);
  info.set_max_message_bytes(options.memory.max_message);
  info.set_memory_budget_bytes(options.memory.requests);
  info.add_extensions("stream");
  info.add_extensions("embeddings");
  if (!options.shared_memory_dir.empty()) info.add_extensions("shared_memory");
  return info.SerializeAsString();
}

}  // namespace quantd::server
