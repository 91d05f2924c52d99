// See rpc_report.h.
#include "rpc_report.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace quantd::bench {
namespace {

std::string SizeText(size_t bytes) {
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= 1 << 10) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

nlohmann::json ToJson(const Figures& figures) {
  return {{"rate", figures.rate},
          {"p50_seconds", figures.p50},
          {"p99_seconds", figures.p99},
          {"cpu_seconds_per_call", figures.cpu},
          {"faults_per_call", figures.faults},
          {"resident_bytes", figures.resident_bytes},
          {"errors", figures.errors}};
}

}  // namespace

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto nth = values.begin() + static_cast<ptrdiff_t>(q * (values.size() - 1));
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

void Turns::Add(Load load, const Usage& before, const Usage& after) {
  rates_.push_back(static_cast<double>(load.calls) / load.seconds);
  latencies_.insert(latencies_.end(), load.latencies.begin(), load.latencies.end());
  calls_ += load.calls;
  errors_ += load.errors;
  cpu_ += after.cpu_seconds - before.cpu_seconds;
  faults_ += static_cast<double>(after.minor_faults - before.minor_faults);
  resident_ = static_cast<double>(after.resident_bytes);
}

Figures Turns::Sum() const {
  Figures figures;
  const double calls = std::max<double>(1, static_cast<double>(calls_));
  figures.rate = Quantile(rates_, 0.5);
  figures.p50 = Quantile(latencies_, 0.5);
  figures.p99 = Quantile(latencies_, 0.99);
  figures.cpu = cpu_ / calls;
  figures.faults = faults_ / calls;
  figures.resident_bytes = resident_;
  figures.errors = errors_;
  return figures;
}

void PrintHeader() {
  std::printf(
      "| call | x | in flight | over | quantd /s | echo /s | rate / echo's | p50 us | / echo's | "
      "p99 us | / echo's "
      "| CPU us | / echo's | faults | MiB |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

void Print(const Row& row) {
  const auto& [q, e] = std::pair(row.quantd, row.echo);
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
  std::printf(
      "| %s | %s | %d | %s | %.0f | %.0f | %.2f | %.1f | %.2f | %.1f | %.2f | %.1f | %.2f | %.2f | "
      "%.0f |%s\n",
      row.operation.c_str(), SizeText(row.bytes).c_str(), row.in_flight, row.transport.c_str(),
      q.rate, e.rate, ratio(q.rate, e.rate), q.p50 * 1e6, ratio(q.p50, e.p50), q.p99 * 1e6,
      ratio(q.p99, e.p99), q.cpu * 1e6, ratio(q.cpu, e.cpu), q.faults, q.resident_bytes / (1 << 20),
      q.errors + e.errors > 0 ? " ERRORS" : "");
  std::fflush(stdout);
}

bool WriteJson(const std::string& path, const std::vector<Row>& rows) {
  nlohmann::json all = nlohmann::json::array();
  for (const Row& row : rows) {
    all.push_back({{"call", row.operation},
                   {"transport", row.transport},
                   {"x_bytes", row.bytes},
                   {"in_flight", row.in_flight},
                   {"quantd", ToJson(row.quantd)},
                   {"echo", ToJson(row.echo)}});
  }
  std::ofstream file(path);
  file << all.dump(1) << "\n";
  file.close();
  return !file.fail();
}

}  // namespace quantd::bench
