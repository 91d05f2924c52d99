// Measures DynamicQuantize by quantd, by a raw echo (rpc_echo.cc), and by the two servers that a
// user would otherwise write: peers_callback_server.cc and peers_aio_server.py. All run at the same
// time over TCP and take turns under the same load. Ratios are those of neighbouring turns
// (rpc_turns.h).
//
//   peers_rpc --model=.../dynamic_quantize.onnx [--callback_server=FILE
//   --library=.../libonnxruntime.so.1]
//             [--aio_server=FILE --python=PYTHON] [--quick] [--json=FILE]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "quantd/v1/quantization.pb.h"
#include "rpc_client.h"
#include "rpc_process.h"
#include "rpc_requests.h"
#include "rpc_turns.h"
#include "server/process/malloc.h"

ABSL_FLAG(std::string, model, "", "of DynamicQuantizeLinear, by peers_models.py");
ABSL_FLAG(std::string, callback_server, "", "peers_callback_server; empty: without it");
ABSL_FLAG(std::string, library, "", "ONNX Runtime's shared library, for that server");
ABSL_FLAG(std::string, aio_server, "", "peers_aio_server.py; empty: without it");
ABSL_FLAG(std::string, python, "", "interpreter for that server");
ABSL_FLAG(bool, quick, false, "fewer turns");
ABSL_FLAG(std::string, json, "", "write the results to this file");

namespace quantd::bench {
namespace {

struct Server {
  std::string name;
  std::unique_ptr<Process> process;
};

struct Result {
  std::string server;
  size_t bytes = 0;  // of x
  int in_flight = 0;
  Figures figures;
  Ratios quantd_to;  // quantd's figures over this server's
};

// quantd first: the others are compared with it. Then the echo.
std::vector<Server> Start(const std::string& folder) {
  std::vector<Server> servers;
  const auto start = [&](const std::string& name, std::vector<std::string> command) {
    servers.push_back({name, std::make_unique<Process>(command, folder + "/" + name)});
  };
  start("quantd", {QUANTD_BINARY, "--listen=127.0.0.1:0",
                   "--http_listen=", "--ready_file=" + folder + "/quantd"});
  start("echo", {ECHO_BINARY, folder + "/echo", "127.0.0.1:0"});
  const std::string model = absl::GetFlag(FLAGS_model);
  const std::string callback_server = absl::GetFlag(FLAGS_callback_server);
  if (!callback_server.empty()) {
    start("callback", {callback_server, folder + "/callback", absl::GetFlag(FLAGS_library), model});
  }
  const std::string aio_server = absl::GetFlag(FLAGS_aio_server);
  if (!aio_server.empty()) {
    start("aio", {absl::GetFlag(FLAGS_python), aio_server, folder + "/aio", model});
  }
  return servers;
}

// The values of an answer; protobuf messages of the same values need not have the same bytes.
std::string Values(const std::string& answer) {
  v1::DynamicQuantizeResponse response;
  if (!response.ParseFromString(answer)) return "";
  return absl::StrCat(response.y_scale().raw_data(), response.y_zero_point().raw_data(),
                      response.y().raw_data());
}

// One row a server, quantd's first; empty when the servers disagree.
std::vector<Result> Measure(const std::vector<Server>& servers, size_t bytes, int in_flight) {
  const int rounds = absl::GetFlag(FLAGS_quick) ? 12 : 24;
  constexpr double kSeconds = 0.08;
  const std::string request = Request({"DynamicQuantize", false, bytes, in_flight, 1});
  const Work work{Method("DynamicQuantize"), ToBuffer(request), in_flight, 0};
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Turn> sides;
  std::string answer;
  for (const Server& server : servers) {
    clients.push_back(std::make_unique<Client>(server.process->addresses()[0]));
    Client& client = *clients.back();
    if (server.name == "echo") {
      // Tells it how long its replies are to be.
      client.Call(Method("Dequantize"), absl::StrCat(request.size(), " ", answer.size()));
    } else {
      const std::string own = client.Call(work.method, request);
      if (answer.empty()) answer = own;
      if (Values(own).empty() || Values(own) != Values(answer)) {
        std::fprintf(stderr, "peers_rpc: %s answers otherwise than quantd\n", server.name.c_str());
        return {};
      }
    }
    sides.push_back(
        [&client, &work, &server] { return client.Run(work, kSeconds, *server.process); });
  }
  const std::vector<Series> all = TakeTurns(sides, rounds);
  std::vector<Result> results;
  for (size_t i = 0; i < servers.size(); ++i) {
    results.push_back({servers[i].name, bytes, in_flight, all[i].Sum(), Compare(all[0], all[i])});
  }
  return results;
}

void Print(const std::vector<Result>& results) {
  for (const Result& result : results) {
    const Figures& f = result.figures;
    const Ratios& to = result.quantd_to;
    std::printf(
        "| %s | %d | %s | %.0f | %.2f | %.2f to %.2f | %.0f | %.0f | %.2f | %.0f | %.0f | %.0f "
        "|%s\n",
        SizeText(result.bytes).c_str(), result.in_flight, result.server.c_str(), f.rate,
        to.rate.median, to.rate.low, to.rate.high, f.p50 * 1e6, f.p99 * 1e6, to.p99.median,
        f.cpu * 1e6, f.faults, f.resident_bytes / (1 << 20), f.errors > 0 ? " ERRORS" : "");
  }
  std::fflush(stdout);
}

bool WriteJson(const std::string& path, const std::vector<Result>& results) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Result& result : results) {
    rows.push_back({{"call", "DynamicQuantize"},
                    {"transport", "tcp"},
                    {"x_bytes", result.bytes},
                    {"in_flight", result.in_flight},
                    {"server", result.server},
                    {"figures", ToJson(result.figures)},
                    {"quantd_to", ToJson(result.quantd_to)}});
  }
  std::ofstream file(path);
  file << rows.dump(1) << "\n";
  file.close();
  return !file.fail();
}

int Main() {
  // The load's own page faults would hide the servers'.
  process::KeepFreedMemory();
  char folder[] = "/tmp/peers_rpc_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  std::vector<Result> all;
  bool good = true;
  {
    const std::vector<Server> servers = Start(folder);
    std::printf(
        "| x | in flight | server | calls /s | quantd's rate / its | quartiles | p50 us | p99 us | "
        "quantd's p99 / its | CPU us | faults | MiB |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (const auto& [bytes, in_flight] : {std::pair<size_t, int>{64 << 10, 8}, {1 << 20, 4}}) {
      const std::vector<Result> results = Measure(servers, bytes, in_flight);
      if (results.empty()) {
        good = false;
        break;
      }
      Print(results);
      for (const Result& result : results) {
        good = good && result.figures.errors == 0;
        all.push_back(result);
      }
    }
  }
  std::filesystem::remove_all(folder);
  const std::string path = absl::GetFlag(FLAGS_json);
  if (!path.empty() && !WriteJson(path, all)) return 1;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace quantd::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return quantd::bench::Main();
}
