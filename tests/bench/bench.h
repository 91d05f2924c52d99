// The sections, a function each, which adds its rows to the report; and what the flags say.
// bench.cc has their descriptions.
#ifndef QUANTD_TESTS_BENCH_BENCH_H_
#define QUANTD_TESTS_BENCH_BENCH_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "report.h"

ABSL_DECLARE_FLAG(bool, quick);
ABSL_DECLARE_FLAG(std::string, filter);
ABSL_DECLARE_FLAG(std::string, onnxruntime);
ABSL_DECLARE_FLAG(std::string, models);
ABSL_DECLARE_FLAG(std::string, python);
ABSL_DECLARE_FLAG(std::string, binary);
ABSL_DECLARE_FLAG(std::vector<std::string>, quantd);

namespace quantd::bench {

// Every kernel of the list beside the copy or the read that bounds it.
void RunKernels(Report& report);
// The operations beside what bounds them, one thread and ONNX Runtime; all granularities.
void RunOperations(Report& report);
// Weights to the layouts of other software and back, beside a copy of them.
void RunLayouts(Report& report);

// Every call, size and number in flight beside the echo.
void RunTable(Report& report);
// Small items on streams against as many unary calls.
void RunStream(Report& report);
// One core to all; one connection to many.
void RunScaling(Report& report);
// Tensors in shared memory, in messages over TCP, and in this process without a server.
void RunShared(Report& report);
// Calls over TLS, beside the echo over TLS and beside quantd without.
void RunTls(Report& report);
// Compressed responses beside plain ones.
void RunCompression(Report& report);
// Beside the servers that a user would otherwise write.
void RunPeers(Report& report);
// Small calls alone, and beside large and heavy ones.
void RunBeside(Report& report);
// Resident memory after mixed requests and after a burst.
void RunMemory(Report& report);

// A process that is in the way of others; see beside.cc.
int RunFlood(const std::vector<std::string>& arguments);

// Turns of each side: --rounds, or one of these.
int Rounds(int quick, int full);
// Seconds of a turn: --seconds, or these.
double Seconds(double otherwise);
// --sizes, or 1 and 16 MiB, and without --quick 256 MiB.
std::vector<size_t> Sizes();
// --threads, or 1 and all.
std::vector<int> Threads();
// Where sockets, ready files and certificates go; removed at the end.
const std::string& Folder();

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_BENCH_H_
