// The sections: one function each, which adds its rows to the report. Below, the values of flags.
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
ABSL_DECLARE_FLAG(std::string, before);
ABSL_DECLARE_FLAG(std::string, binary);
ABSL_DECLARE_FLAG(std::vector<std::string>, quantd);

namespace quantd::bench {

// Every kernel of the list, compared with the copy or the read that bounds it.
void RunKernels(Report& report);
// The operations, compared with their bounds, with one thread and with ONNX Runtime; all
// granularities.
void RunOperations(Report& report);

// Every call, size and number in flight, compared with the echo.
void RunTable(Report& report);
// Small items on streams, compared with as many unary calls.
void RunStream(Report& report);
// From one core to all of them, and from one connection to many.
void RunScaling(Report& report);
// Tensors in shared memory, in messages over TCP, and in this process without a server.
void RunShared(Report& report);
// Calls over TLS, compared with the echo over TLS and with quantd without TLS.
void RunTls(Report& report);
// Compared with the servers that a user would write instead.
void RunPeers(Report& report);
// Small calls alone, and while large and heavy ones run.
void RunBeside(Report& report);

// A process that disturbs others; see beside.cc.
int RunFlood(const std::vector<std::string>& arguments);

// The turns of each side: --rounds, or one of these numbers.
int Rounds(int quick, int full);
// The seconds of a turn: --seconds, or this number.
double Seconds(double otherwise);
// --sizes, or 1 and 16 MiB, and without --quick 256 MiB as well.
std::vector<size_t> Sizes();
// --threads, or 1 and all.
std::vector<int> Threads();
// A folder for sockets, ready files and certificates; removed at the end.
const std::string& Folder();

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_BENCH_H_
