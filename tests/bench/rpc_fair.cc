// Two clients that want more than there is, one from many connections: what each gets. See
// rpc_sections.h.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "rpc_flood.h"
#include "rpc_sections.h"

namespace quantd::bench {
namespace {

// Each is a process, and over a Unix socket a process is a peer.
struct Party {
  int connections, in_flight;
};
struct Case {
  const char* name;
  Party first, second;
};
constexpr Case kCases[] = {
    {"the same", {1, 16}, {1, 16}},
    {"64 connections and 1", {64, 64}, {1, 16}},
    {"64 in flight and 8", {1, 64}, {1, 8}},
};

}  // namespace

nlohmann::json RunFair(const Options& options, uint64_t& errors) {
  // With vectors the clients' own work would be as much as the server's, and decide.
  const Process quantd = StartQuantd(options, "fair_quantd", {"--simd=scalar"});
  nlohmann::json rows = nlohmann::json::array();
  std::printf(
      "\nTwo clients over a Unix socket, Quantize of 1 MiB with its error reported, by scalar "
      "kernels\n\n"
      "| clients | calls /s of the first | of the second | first / second |\n|---|---|---|---|\n");
  for (const Case& one : kCases) {
    const auto of = [](const Party& party) {
      return Config{"Quantize", true, 1 << 20, party.in_flight, 1, true};
    };
    const Flood first(options, "first", quantd, of(one.first), one.first.connections, false, 0);
    const Flood second(options, "second", quantd, of(one.second), one.second.connections, false, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const uint64_t before[] = {first.calls(), second.calls()};
    const double seconds = options.quick ? 2 : 5;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const double rates[] = {static_cast<double>(first.calls() - before[0]) / seconds,
                            static_cast<double>(second.calls() - before[1]) / seconds};
    std::printf("| %s | %.0f | %.0f | %.2f |\n", one.name, rates[0], rates[1], rates[0] / rates[1]);
    std::fflush(stdout);
    rows.push_back({{"clients", one.name}, {"first_rate", rates[0]}, {"second_rate", rates[1]}});
    if (rates[0] == 0 || rates[1] == 0) ++errors;
  }
  return rows;
}

}  // namespace quantd::bench
