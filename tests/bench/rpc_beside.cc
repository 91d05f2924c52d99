// 4-byte calls alone, and while another process calls without a pause: what the large and the heavy
// ones cost the small ones. See rpc_sections.h.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc_flood.h"
#include "rpc_sections.h"

namespace quantd::bench {
namespace {

struct Pass {
  std::vector<double> alone, beside;  // latencies
  uint64_t large = 0;
  double seconds = 0;  // that large ones were sent
  double cpu = 0;      // seconds, of the server that computes them
};

void Add(std::vector<double>& all, const Load& load) {
  all.insert(all.end(), load.latencies.begin(), load.latencies.end());
}

struct Case {
  Config large;
  int connections = 1;
  bool quick = false;
};
const Case kCases[] = {
    {{"Quantize", false, 16 << 20, 1, 1}},
    {{"Quantize", false, 16 << 20, 4, 1}, 4},
    {{"Quantize", false, 256 << 20, 1, 1}, 1, true},
    {{"Quantize", false, 256 << 20, 2, 1}, 2},
    // Compute-heavy: scalar kernels, and the error is reported. The small calls' own server is
    // another quantd, whose machine has the same to do.
    {{"Quantize", false, 4 << 20, 16, 1, true}, 4, true},
    {{"Quantize", false, 4 << 20, 16, 1, true}, 1},
};

std::string NameOf(const Case& one) {
  return absl::StrCat(one.large.in_flight, " x ", SizeText(one.large.bytes),
                      one.large.report_error ? " by scalar kernels" : "", ", ", one.connections,
                      one.connections == 1 ? " connection" : " connections");
}

// The small calls go to `small`, the large ones to `server`.
void Measure(const Options& options, const Case& one, const Process& server, bool echo, Side& small,
             double seconds, Pass& pass) {
  Add(pass.alone, small.Take(seconds / 2));
  const Flood flood(options, "beside", server, one.large, one.connections, echo);
  const uint64_t calls = flood.calls();
  const double cpu = server.Read().cpu_seconds;
  const Load beside = small.Take(seconds);
  Add(pass.beside, beside);
  pass.seconds += beside.seconds;
  pass.large += flood.calls() - calls;
  pass.cpu += server.Read().cpu_seconds - cpu;
}

nlohmann::json Report(const Case& one, const char* name, const Pass& pass, double other_p99) {
  const double p50 = Quantile(pass.alone, 0.5), p99 = Quantile(pass.alone, 0.99);
  const double p50_beside = Quantile(pass.beside, 0.5), p99_beside = Quantile(pass.beside, 0.99);
  const double rate = static_cast<double>(pass.large) / pass.seconds;
  std::printf("| %s | %s | %.1f | %.2f | %.0f | %.0f | %.0f | %.0f | %.2f | %.2f |\n",
              NameOf(one).c_str(), name, rate, pass.cpu / pass.seconds, p50 * 1e6, p50_beside * 1e6,
              p99 * 1e6, p99_beside * 1e6, p99_beside / p99, p99_beside / other_p99);
  return {{"server", name},
          {"large_bytes", one.large.bytes},
          {"in_flight", one.large.in_flight},
          {"connections", one.connections},
          {"report_error", one.large.report_error},
          {"large_rate", rate},
          {"cores", pass.cpu / pass.seconds},
          {"p50_alone_seconds", p50},
          {"p50_beside_seconds", p50_beside},
          {"p99_alone_seconds", p99},
          {"p99_beside_seconds", p99_beside}};
}

}  // namespace

nlohmann::json RunBeside(const Options& options, uint64_t& errors) {
  const Process quantd = StartQuantd(options, "beside_quantd");
  // What computes so slowly that the calls' own way is little of their work.
  const Process slow = StartQuantd(options, "beside_slow", {"--simd=scalar"});
  const Process echo = StartEcho(options, "beside_echo");
  const Config small{"Quantize", false, 4, 1, 1};
  nlohmann::json rows = nlohmann::json::array();
  std::printf(
      "\nQuantize of 4 B, 1 in flight, while another process calls; the echo has the same traffic, "
      "a server of its own the same machine\n\n"
      "| beside | server | calls /s | cores | p50 us alone | beside | p99 us alone | beside | to "
      "alone | to the other's |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Case& one : kCases) {
    if (options.quick && !one.quick) continue;
    const bool heavy = one.large.report_error;
    // The last argument tells the echo how long its replies are, to both.
    if (!heavy) Side(echo, one.large, &quantd);
    const Process& server = heavy ? slow : quantd;
    Side mine(server, small, nullptr);
    Side others(heavy ? quantd : echo, small, heavy ? nullptr : &quantd);
    Pass passes[2];
    for (int round = 0; round < (options.quick ? 2 : 4); ++round) {
      for (int i = 0; i < 2; ++i) {
        if ((round + i) % 2 == 0) {
          Measure(options, one, server, false, mine, 1.0, passes[0]);
        } else {
          Measure(options, one, heavy ? slow : echo, !heavy, others, 1.0, passes[1]);
        }
      }
    }
    const double p99 = Quantile(passes[1].beside, 0.99);
    rows.push_back(Report(one, "quantd", passes[0], p99));
    rows.push_back(Report(one, heavy ? "of its own" : "echo", passes[1], p99));
    // No large call ended: nothing was measured.
    for (const Pass& pass : passes) {
      if (pass.large == 0) ++errors;
    }
    std::fflush(stdout);
  }
  return rows;
}

}  // namespace quantd::bench
