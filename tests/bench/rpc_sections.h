// What rpc_bench measures, a section a file: each prints a table and returns its part of the JSON.
// Errors of calls are counted in `errors`.
#ifndef QUANTD_TESTS_BENCH_RPC_SECTIONS_H_
#define QUANTD_TESTS_BENCH_RPC_SECTIONS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "rpc_servers.h"

namespace quantd::bench {

// Every call, size and number in flight beside the echo.
nlohmann::json RunTable(const Options& options, uint64_t& errors);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_RPC_SECTIONS_H_
