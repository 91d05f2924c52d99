// Small items on 32 streams against 32 small unary calls, of quantd and of the echo: what the
// stream saves. See rpc_sections.h.
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rpc_sections.h"

namespace quantd::bench {

nlohmann::json RunStream(const Options& options, uint64_t& errors) {
  const Process servers[] = {StartQuantd(options, "stream_quantd"),
                             StartEcho(options, "stream_echo")};
  const char* const names[] = {"quantd", "echo"};
  const Config configs[] = {{"DynamicQuantize", false, 4, 32, 1},
                            {"Stream", false, 4, 32, 1},
                            {"Stream", false, 4, 32, 8}};
  std::printf(
      "\nDynamicQuantize of 4 B: 32 calls in flight, and 32 streams with 1 or 8 items in flight "
      "each\n\n"
      "| server | calls /s | items /s, 1 | to calls | quartiles | items /s, 8 | to calls | "
      "quartiles |\n|---|---|---|---|---|---|---|---|\n");
  std::deque<Side> sides;
  for (const Process& server : servers) {
    for (const Config& config : configs) {
      sides.emplace_back(server, config, &server == &servers[0] ? nullptr : &servers[0]);
    }
  }
  std::vector<Turn> turns;
  for (Side& side : sides) {
    turns.push_back([&side, &options] { return side.Take(options.turn_seconds); });
  }
  const std::vector<Series> all = TakeTurns(turns, options.rounds);
  nlohmann::json result = nlohmann::json::object();
  for (size_t i = 0; i < 2; ++i) {
    const Series* const of = &all[3 * i];
    const Ratio one = Compare(of[1], of[0]).rate, eight = Compare(of[2], of[0]).rate;
    std::printf("| %s | %.0f | %.0f | %.2f | %.2f to %.2f | %.0f | %.2f | %.2f to %.2f |\n",
                names[i], of[0].Sum().rate, of[1].Sum().rate, one.median, one.low, one.high,
                of[2].Sum().rate, eight.median, eight.low, eight.high);
    result[names[i]] = {{"unary", ToJson(of[0].Sum())},
                        {"stream_1", ToJson(of[1].Sum())},
                        {"stream_8", ToJson(of[2].Sum())},
                        {"stream_1_to_unary", ToJson(one)},
                        {"stream_8_to_unary", ToJson(eight)}};
    for (size_t k = 0; k < 3; ++k) errors += of[k].Sum().errors;
  }
  std::fflush(stdout);
  return result;
}

}  // namespace quantd::bench
