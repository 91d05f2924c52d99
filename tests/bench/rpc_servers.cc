// See rpc_servers.h.
#include "rpc_servers.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace quantd::bench {
namespace {

// Bytes of quantd's answer to one call or one item.
size_t AnswerBytes(const Process& quantd, const Config& config) {
  Client client(Address(quantd, config), 1, 1, config.certificate);
  Config unary = config;
  if (config.operation == "Stream") unary.operation = "DynamicQuantize";
  const size_t bytes = client.Call(Method(unary.operation), Request(unary)).size();
  // An item has its id and its length around the answer.
  return config.operation == "Stream" ? bytes + 6 : bytes;
}

}  // namespace

const std::string& Address(const Process& server, const Config& config) {
  return server.addresses()[config.unix_socket ? 1 : 0];
}

Process StartQuantd(const Options& options, const std::string& name,
                    const std::vector<std::string>& flags, const std::vector<int>& cpus) {
  const std::string path = absl::StrCat(options.folder, "/", name);
  std::vector<std::string> command = {
      options.quantd,   "--listen=127.0.0.1:0",           "--listen=unix:" + path,
      "--http_listen=", "--max_message_bytes=1073741824", "--ready_file=" + path + ".json"};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), options.quantd_flags.begin(), options.quantd_flags.end());
  return Process(command, path + ".json", cpus);
}

Process StartEcho(const Options& options, const std::string& name, const std::vector<int>& cpus,
                  const std::vector<std::string>& flags) {
  const std::string path = absl::StrCat(options.folder, "/", name);
  std::vector<std::string> command = {ECHO_BINARY};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {path + ".json", "127.0.0.1:0", "unix:" + path});
  return Process(command, path + ".json", cpus);
}

Side::Side(const Process& server, const Config& config, const Process* like, int connections,
           int threads)
    : server_(server), client_(Address(server, config), connections, threads, config.certificate) {
  const std::string request = Request(config);
  work_.request = ToBuffer(request);
  work_.in_flight = config.in_flight;
  if (config.operation == "Stream") work_.window = config.window;
  work_.method = Method(config.operation);
  if (like == nullptr) return;
  // The echo has one method for all unary calls.
  if (config.operation != "Stream") work_.method = Method("DynamicQuantize");
  client_.Call(Method("Dequantize"), absl::StrCat(request.size(), " ", AnswerBytes(*like, config)));
}

}  // namespace quantd::bench
