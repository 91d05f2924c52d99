#include "servers.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench.h"
#include "operation.h"
#include "quantd/executor.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::bench {
namespace {

// With one scale, it has the values of an Operation.
v1::Tensor ToProto(v1::DataType type, const Shape& shape, const Memory& memory) {
  v1::Tensor tensor;
  tensor.set_data_type(type);
  for (const int64_t length : shape) tensor.add_shape(length);
  tensor.set_raw_data(memory.data(), memory.size());
  return tensor;
}

v1::Tensor FloatTensor(const Shape& shape, size_t count) {
  return ToProto(v1::DATA_TYPE_FLOAT, shape, Floats(count));
}

void InRegion(const std::string& name, size_t size, v1::SharedMemoryReference& reference) {
  reference.set_region(name);
  reference.set_byte_size(size);
}

// For the three operations.
template <typename Message>
Message Fill(const Config& config) {
  constexpr bool kWidens = std::is_same_v<Message, v1::DequantizeRequest>;
  Message message;
  v1::Tensor& x = *message.mutable_x();
  const auto size = static_cast<int64_t>(kWidens ? config.bytes : config.bytes / sizeof(float));
  const auto count = static_cast<size_t>(size);
  x = kWidens ? ToProto(v1::DATA_TYPE_UINT8, {size}, Codes(count)) : FloatTensor({size}, count);
  if (config.shared) {
    x.clear_raw_data();
    InRegion("x", config.bytes, *x.mutable_shared_memory());
    InRegion("y", kWidens ? 4 * config.bytes : config.bytes / 4, *message.mutable_output());
  }
  if constexpr (!std::is_same_v<Message, v1::DynamicQuantizeRequest>) {
    const Operation like({});
    *message.mutable_scale() = ToProto(v1::DATA_TYPE_FLOAT, {}, like.scale());
    *message.mutable_zero_point() = ToProto(v1::DATA_TYPE_UINT8, {}, like.zero_point());
  }
  if constexpr (!kWidens) message.set_report_error(config.report_error);
  return message;
}

std::string Embeddings(size_t bytes) {
  constexpr int64_t kWidth = 1024;
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  v1::QuantizeEmbeddingsRequest request;
  *request.mutable_x() = FloatTensor({count / kWidth, kWidth}, static_cast<size_t>(count));
  request.set_recipe(v1::EMBEDDING_RECIPE_RANGES);
  const Memory ranges(2 * kWidth * sizeof(float));
  auto* const lowest = reinterpret_cast<float*>(ranges.data());
  std::fill_n(lowest, kWidth, -3.0F);
  std::fill_n(lowest + kWidth, kWidth, 3.0F);
  *request.mutable_ranges() = ToProto(v1::DATA_TYPE_FLOAT, {2, kWidth}, ranges);
  return request.SerializeAsString();
}

// The size of quantd's response to one call or one item.
size_t ResponseBytes(const Process& quantd, const Config& config) {
  Config unary = config;
  if (config.operation == "Stream") unary.operation = "DynamicQuantize";
  const size_t bytes =
      Connect(quantd, config)->Call(Method(unary.operation), Request(unary)).size();
  // An item has its id and its length around the response.
  return config.operation == "Stream" ? bytes + 6 : bytes;
}

Side SideOf(const std::string& name, const Process& server, const Config& config,
            const std::string& method, std::shared_ptr<Client> client) {
  const Work work{Method(method), ToBuffer(Request(config)), config.in_flight,
                  config.operation == "Stream" ? config.window : 0};
  return {name, [work, client = std::move(client), &server, seconds = Seconds(config.seconds)] {
            return client->Run(work, seconds, server);
          }};
}

}  // namespace

std::string Config::Name() const {
  return absl::StrCat(operation, " ", unix_socket ? "unix" : "tcp", " ", SizeText(bytes), " x ",
                      in_flight, window > 1 ? absl::StrCat(" x ", window) : "",
                      connections > 1 ? absl::StrCat(", ", connections, " connections") : "");
}

std::string Method(const std::string& name) {
  return absl::StrCat("/quantd.v1.QuantizationService/", name);
}

std::string Request(const Config& config) {
  if (config.operation == "Quantize") return Fill<v1::QuantizeRequest>(config).SerializeAsString();
  if (config.operation == "Dequantize") {
    return Fill<v1::DequantizeRequest>(config).SerializeAsString();
  }
  if (config.operation == "QuantizeEmbeddings") return Embeddings(config.bytes);
  auto request = Fill<v1::DynamicQuantizeRequest>(config);
  if (config.operation == "DynamicQuantize") return request.SerializeAsString();
  v1::StreamRequest item;
  item.set_id(1);
  *item.mutable_dynamic_quantize() = std::move(request);
  return item.SerializeAsString();
}

const std::string& Address(const Process& server, const Config& config) {
  return server.addresses()[config.unix_socket ? 1 : 0];
}

Process StartQuantd(const std::string& name, const std::vector<std::string>& flags,
                    const std::vector<int>& cpus, const std::string& binary) {
  const std::string path = absl::StrCat(Folder(), "/", name);
  std::vector<std::string> command = {
      binary,           "--listen=127.0.0.1:0",           "--listen=unix:" + path,
      "--http_listen=", "--max_message_bytes=1073741824", "--ready_file=" + path + ".json"};
  command.insert(command.end(), flags.begin(), flags.end());
  const std::vector<std::string> given = absl::GetFlag(FLAGS_quantd);
  command.insert(command.end(), given.begin(), given.end());
  return Process(command, path + ".json", cpus);
}

std::unique_ptr<Process> StartBefore(const std::string& name,
                                     const std::vector<std::string>& flags) {
  const std::string before = absl::GetFlag(FLAGS_before);
  if (before.empty()) return nullptr;
  return std::unique_ptr<Process>(new Process(StartQuantd(name, flags, {}, before)));
}

Process StartEcho(const std::string& name, const std::string& tls) {
  const std::string path = absl::StrCat(Folder(), "/", name);
  std::vector<std::string> command = {ECHO_BINARY, path};
  if (!tls.empty()) command.push_back(tls);
  return Process(command, path + ".json");
}

std::shared_ptr<Client> Connect(const Process& server, const Config& config) {
  // One thread of the load cannot keep many cores busy.
  const int threads =
      std::clamp(Executor::DefaultThreads() / 2, 1, std::min(config.connections, 8));
  return std::make_shared<Client>(Address(server, config), config.connections, threads,
                                  config.certificate);
}

Side Calling(const std::string& name, const Process& server, const Config& config,
             std::shared_ptr<Client> client) {
  if (client == nullptr) client = Connect(server, config);
  return SideOf(name, server, config, config.operation, std::move(client));
}

Side CallingEcho(const Process& echo, const Process& quantd, const Config& config) {
  auto client = Connect(echo, config);
  client->Call(Method("Dequantize"),
               absl::StrCat(Request(config).size(), " ", ResponseBytes(quantd, config)));
  // The echo has one method for all unary calls.
  const std::string method = config.operation == "Stream" ? "Stream" : "DynamicQuantize";
  return SideOf("echo", echo, config, method, std::move(client));
}

}  // namespace quantd::bench
