// Sums of the turns of one configuration, and the table and JSON made of them.
#ifndef QUANTD_TESTS_BENCH_RPC_REPORT_H_
#define QUANTD_TESTS_BENCH_RPC_REPORT_H_

#include <string>
#include <vector>

#include "rpc_client.h"
#include "rpc_process.h"

namespace quantd::bench {

// One server in one configuration, over all of its turns.
struct Figures {
  double rate = 0;            // calls or items a second: median of the turns
  double p50 = 0;             // seconds
  double p99 = 0;             // seconds
  double cpu = 0;             // seconds of the server a call
  double faults = 0;          // page faults of the server a call
  double resident_bytes = 0;  // at the end
  uint64_t errors = 0;
};

// The turns of one server in one configuration.
class Turns {
 public:
  void Add(Load load, const Usage& before, const Usage& after);
  Figures Sum() const;

 private:
  std::vector<double> rates_;
  std::vector<double> latencies_;
  uint64_t calls_ = 0;
  uint64_t errors_ = 0;
  double cpu_ = 0;
  double faults_ = 0;
  double resident_ = 0;
};

struct Row {
  std::string operation;  // "DynamicQuantize", or "Stream" of them
  std::string transport;  // "tcp" or "unix"
  size_t bytes = 0;       // of x
  int in_flight = 0;
  Figures quantd;
  Figures echo;
};

// The value below which the part q of the values lies; 0 for none.
double Quantile(std::vector<double> values, double q);

void PrintHeader();
void Print(const Row& row);
// False when the file can't be written.
bool WriteJson(const std::string& path, const std::vector<Row>& rows);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_RPC_REPORT_H_
