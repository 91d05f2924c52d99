// Measures quantd's calls beside a raw echo with replies of the same size (rpc_echo.cc): both run
// at the same time, and take turns under load.
//
//   rpc_bench [--quick] [--turns=N] [--turn_seconds=S] [--json=FILE] [--only=TEXT]
//   [--quantd=FLAG]...
//
// --only: rows whose "call transport bytes in_flight" contains the text, such as "tcp 1048576 4";
// "beside" only the last lines.
// --quantd: a flag for quantd; --binary: another quantd, to compare two builds.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "quantd/v1/quantization.pb.h"
#include "rpc_client.h"
#include "rpc_process.h"
#include "rpc_report.h"

namespace quantd::bench {
namespace {

const std::string kService = "/quantd.v1.QuantizationService/";

struct Arguments {
  bool quick = false;
  int turns = 5;
  double turn_seconds = 0.4;
  std::string json;
  std::string only;
  std::string binary = QUANTD_BINARY;
  std::vector<std::string> quantd_flags;
};

struct Config {
  std::string operation;  // "Quantize", "DynamicQuantize" or "Stream"
  bool unix_socket = false;
  size_t bytes = 0;
  int in_flight = 1;
  std::string Name() const {
    return absl::StrCat(operation, " ", unix_socket ? "unix" : "tcp", " ", bytes, " ", in_flight);
  }
};

v1::Tensor Values(size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  v1::Tensor x;
  x.set_data_type(v1::DATA_TYPE_FLOAT);
  x.add_shape(static_cast<int64_t>(values.size()));
  x.set_raw_data(values.data(), bytes);
  return x;
}

v1::Tensor Scale() {
  const float scale = 1.0f / 64;
  v1::Tensor tensor;
  tensor.set_data_type(v1::DATA_TYPE_FLOAT);
  tensor.set_raw_data(&scale, sizeof(scale));
  return tensor;
}

std::string Request(const Config& config) {
  if (config.operation == "Quantize") {
    v1::QuantizeRequest request;
    *request.mutable_x() = Values(config.bytes);
    *request.mutable_scale() = Scale();
    return request.SerializeAsString();
  }
  if (config.operation == "Dequantize") {
    v1::DequantizeRequest request;
    request.mutable_x()->set_data_type(v1::DATA_TYPE_UINT8);
    request.mutable_x()->add_shape(static_cast<int64_t>(config.bytes));
    request.mutable_x()->set_raw_data(std::string(config.bytes, 'q'));
    *request.mutable_scale() = Scale();
    return request.SerializeAsString();
  }
  v1::DynamicQuantizeRequest request;
  *request.mutable_x() = Values(config.bytes);
  if (config.operation == "DynamicQuantize") return request.SerializeAsString();
  v1::StreamRequest item;
  item.set_id(1);
  *item.mutable_dynamic_quantize() = std::move(request);
  return item.SerializeAsString();
}

// Bytes of quantd's answer.
size_t AnswerBytes(Client& client, const Config& config, const std::string& request) {
  if (config.operation != "Stream") return client.Call(kService + config.operation, request).size();
  Config unary = config;
  unary.operation = "DynamicQuantize";
  // An item has its id and its length around the answer.
  return client.Call(kService + unary.operation, Request(unary)).size() + 6;
}

Load RunOne(Client& client, const Config& config, bool echo, const std::string& request,
            double seconds) {
  if (config.operation == "Stream") {
    return client.Stream(kService + "Stream", request, config.in_flight, seconds);
  }
  // The echo has one method for all.
  const std::string method = echo ? "DynamicQuantize" : config.operation;
  return client.Unary(kService + method, request, config.in_flight, seconds);
}

class Bench {
 public:
  Bench(const Arguments& arguments, const std::string& folder)
      : arguments_(arguments),
        quantd_(QuantdCommand(arguments, folder), folder + "/quantd.json"),
        echo_({ECHO_BINARY, folder + "/echo.json", "127.0.0.1:0", "unix:" + folder + "/echo"},
              folder + "/echo.json") {}

  // quantd alone; from any thread.
  Load RunQuantd(const Config& config, const std::string& request, double seconds) const {
    Client client(quantd_.addresses()[0]);
    return RunOne(client, config, false, request, seconds);
  }

  Row Run(const Config& config) {
    const size_t address = config.unix_socket ? 1 : 0;
    Client quantd(quantd_.addresses()[address]);
    Client echo(echo_.addresses()[address]);
    const std::string request = Request(config);
    const size_t answer = AnswerBytes(quantd, config, request);
    echo.Call(kService + "Dequantize", std::to_string(answer));
    RunOne(quantd, config, false, request, arguments_.turn_seconds / 2);
    RunOne(echo, config, true, request, arguments_.turn_seconds / 2);
    Turns quantd_turns, echo_turns;
    for (int turn = 0; turn < arguments_.turns; ++turn) {
      Take(quantd, quantd_, config, false, request, quantd_turns);
      Take(echo, echo_, config, true, request, echo_turns);
    }
    return {config.operation,   config.unix_socket ? "unix" : "tcp",
            config.bytes,       config.in_flight,
            quantd_turns.Sum(), echo_turns.Sum()};
  }

 private:
  static std::vector<std::string> QuantdCommand(const Arguments& arguments,
                                                const std::string& folder) {
    std::vector<std::string> command = {arguments.binary,
                                        "--listen=127.0.0.1:0",
                                        "--listen=unix:" + folder + "/quantd",
                                        "--http_listen=",
                                        "--max_message_bytes=1073741824",
                                        "--ready_file=" + folder + "/quantd.json"};
    command.insert(command.end(), arguments.quantd_flags.begin(), arguments.quantd_flags.end());
    return command;
  }

  void Take(Client& client, const Process& process, const Config& config, bool echo,
            const std::string& request, Turns& turns) {
    const Usage before = process.Read();
    Load load = RunOne(client, config, echo, request, arguments_.turn_seconds);
    turns.Add(std::move(load), before, process.Read());
  }

  const Arguments arguments_;
  const Process quantd_;
  const Process echo_;
};

// 4-byte calls alone, and while another client sends requests of 256 MiB without a pause: what the
// large ones cost the small ones.
void Beside(Bench& bench, double seconds) {
  const Config small{"Quantize", false, 4, 1};
  const Config large{"Quantize", false, 256 << 20, 1};
  const std::string small_request = Request(small), large_request = Request(large);
  const Load alone = bench.RunQuantd(small, small_request, seconds);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> larges{0};
  std::thread other([&] {
    while (!stop) larges += bench.RunQuantd(large, large_request, 0.5).calls;
  });
  const Load beside = bench.RunQuantd(small, small_request, seconds);
  stop = true;
  other.join();
  const double before = Quantile(alone.latencies, 0.99), during = Quantile(beside.latencies, 0.99);
  std::printf(
      "\n4 B Quantize, 1 in flight: p99 %.0f us alone, %.0f us beside 256 MiB requests (%llu of "
      "them): %.1f times\n",
      before * 1e6, during * 1e6, static_cast<unsigned long long>(larges), during / before);
}

std::vector<Config> Configs(const Arguments& arguments) {
  std::vector<Config> all;
  const std::vector<size_t> sizes = {4, 4 << 10, 64 << 10, 1 << 20, 16 << 20};
  for (const bool unix_socket : {false, true}) {
    for (const char* operation : {"Quantize", "DynamicQuantize", "Dequantize", "Stream"}) {
      for (const size_t bytes : sizes) {
        for (const int in_flight : {1, 4, 32}) {
          Config config{operation, unix_socket, bytes, in_flight};
          if (bytes == 16 << 20 && in_flight == 32) continue;  // half a gigabyte in flight
          // The table of the README in --quick: the ends and the middle.
          const bool few = !unix_socket && (in_flight == (bytes >= 1 << 20 ? 4 : 1)) &&
                           (bytes == 4 || bytes >= 1 << 20);
          if (arguments.quick && !few) continue;
          if (!absl::StrContains(config.Name(), arguments.only)) continue;
          all.push_back(config);
        }
      }
    }
  }
  return all;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    absl::string_view text = argv[i];
    bool good = true;
    if (text == "--quick") {
      arguments.quick = true;
    } else if (absl::ConsumePrefix(&text, "--turns=")) {
      good = absl::SimpleAtoi(text, &arguments.turns);
    } else if (absl::ConsumePrefix(&text, "--turn_seconds=")) {
      good = absl::SimpleAtod(text, &arguments.turn_seconds);
    } else if (absl::ConsumePrefix(&text, "--json=")) {
      arguments.json = std::string(text);
    } else if (absl::ConsumePrefix(&text, "--only=")) {
      arguments.only = std::string(text);
    } else if (absl::ConsumePrefix(&text, "--binary=")) {
      arguments.binary = std::string(text);
    } else if (absl::ConsumePrefix(&text, "--quantd=")) {
      arguments.quantd_flags.push_back(std::string(text));
    } else {
      good = false;
    }
    if (!good) {
      std::fprintf(stderr, "rpc_bench: what is '%s'?\n", argv[i]);
      return 2;
    }
  }
  char folder[] = "/tmp/rpc_bench_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  std::vector<Row> rows;
  {
    Bench bench(arguments, folder);
    PrintHeader();
    for (const Config& config : Configs(arguments)) {
      rows.push_back(bench.Run(config));
      Print(rows.back());
    }
    if (arguments.only.empty() || arguments.only == "beside") Beside(bench, 3);
  }
  std::filesystem::remove_all(folder);
  if (!arguments.json.empty() && !WriteJson(arguments.json, rows)) return 1;
  const auto failed = [](const Row& row) { return row.quantd.errors + row.echo.errors > 0; };
  return std::any_of(rows.begin(), rows.end(), failed) ? 1 : 0;
}

}  // namespace
}  // namespace quantd::bench

int main(int argc, char** argv) { return quantd::bench::Main(argc, argv); }
