// See rpc_flood.h.
#include "rpc_flood.h"

#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quantd::bench {
namespace {

// A rename, so that nobody reads half a file.
void WriteCount(const std::string& path, uint64_t calls) {
  std::ofstream(path + ".new") << nlohmann::json{{"grpc", nlohmann::json::array()},
                                                 {"calls", calls}};
  std::filesystem::rename(path + ".new", path);
}

std::string NewFile(const Options& options, const std::string& name) {
  const std::string file = absl::StrCat(options.folder, "/flood_", name, ".json");
  std::filesystem::remove(file);
  return file;
}

}  // namespace

Flood::Flood(const Options& options, const std::string& name, const Process& server,
             const Config& large, int connections, bool echo, int niceness)
    : file_(NewFile(options, name)),
      process_(
          {"/proc/self/exe", "--flood", Address(server, large),
           Method(echo ? "DynamicQuantize" : large.operation), large.operation,
           absl::StrCat(large.bytes), absl::StrCat(large.report_error ? 1 : 0),
           absl::StrCat(large.in_flight), absl::StrCat(connections), absl::StrCat(niceness), file_},
          file_) {}

uint64_t Flood::calls() const {
  std::ifstream file(file_);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  return json.is_object() ? json.value("calls", uint64_t{0}) : 0;
}

int RunFlood(const std::vector<std::string>& arguments) {
  Config config;
  int report = 0;
  int connections = 1;
  int niceness = 0;
  if (arguments.size() != 9 || !absl::SimpleAtoi(arguments[3], &config.bytes) ||
      !absl::SimpleAtoi(arguments[4], &report) ||
      !absl::SimpleAtoi(arguments[5], &config.in_flight) ||
      !absl::SimpleAtoi(arguments[6], &connections) || !absl::SimpleAtoi(arguments[7], &niceness) ||
      setpriority(PRIO_PROCESS, 0, niceness) != 0) {
    return 2;
  }
  config.operation = arguments[2];
  config.report_error = report != 0;
  const grpc::ByteBuffer request = ToBuffer(Request(config));
  Client client(arguments[0], connections);
  std::vector<std::thread> threads;
  std::atomic<uint64_t> calls{0};
  std::mutex mutex;
  for (int i = 0; i < config.in_flight; ++i) {
    threads.emplace_back([&, i] {
      for (;;) {
        grpc::ByteBuffer response;
        if (!client.Call(arguments[1], request, response, i).ok()) std::exit(1);
        const std::lock_guard lock(mutex);
        WriteCount(arguments[8], ++calls);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace quantd::bench
