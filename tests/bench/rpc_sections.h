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
// Small items on streams against as many unary calls.
nlohmann::json RunStream(const Options& options, uint64_t& errors);
// Small calls alone, and beside large and heavy ones.
nlohmann::json RunBeside(const Options& options, uint64_t& errors);
// The shares of two clients.
nlohmann::json RunFair(const Options& options, uint64_t& errors);
// One core to all; one connection to many.
nlohmann::json RunScaling(const Options& options, uint64_t& errors);
// Tensors in shared memory, in messages over TCP, and in this process without a server.
nlohmann::json RunShared(const Options& options, uint64_t& errors);
// Calls over TLS, beside the echo over TLS and beside quantd without.
nlohmann::json RunTls(const Options& options, uint64_t& errors);
// Resident memory after mixed requests and after a burst.
nlohmann::json RunMemory(const Options& options, uint64_t& errors);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_RPC_SECTIONS_H_
