// The calls that are measured, and their messages.
#ifndef QUANTD_TESTS_BENCH_RPC_REQUESTS_H_
#define QUANTD_TESTS_BENCH_RPC_REQUESTS_H_

#include <cstddef>
#include <string>

namespace quantd::bench {

struct Config {
  std::string operation;  // "Quantize", "DynamicQuantize", "Dequantize", or "Stream" of the second
  bool unix_socket = false;
  size_t bytes = 0;              // of x
  int in_flight = 1;             // calls, or streams
  int window = 1;                // a Stream's items in flight
  bool report_error = false;     // of Quantize: ten times the work
  std::string certificate = {};  // of a server with TLS, PEM; empty: plain text

  // "call transport bytes in_flight", and " window" for more than one.
  std::string Name() const;
};

// "/service/" and the name.
std::string Method(const std::string& name);

// The message of one call or one item.
std::string Request(const Config& config);

// "64 KiB"
std::string SizeText(size_t bytes);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_RPC_REQUESTS_H_
