#include "testing.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <utility>

#include "../http/peer.h"
#include "absl/strings/str_cat.h"
#include "server/loop/loop.h"
#include "server/options/options.h"
#include "server/rpc/request_run.h"

namespace quantd::rpc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::milliseconds kPause{2};

template <typename Condition>
bool Within(Condition condition) {
  const Clock::time_point end = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

std::atomic<int> reached{0};
constexpr int kAll = 1 << 30;
std::atomic<int> may_pass{kAll};
std::atomic<bool> last_led{false};

void StandAtTheGate() {
  last_led = loop::Loop::Here() != nullptr;
  const int number = reached.fetch_add(1);
  Within([=] { return number < may_pass; });
}

}  // namespace

TestServer::TestServer(const std::vector<std::string>& flags) {
  // Every flag that a test sets is listed here: flags keep the values of the server before.
  std::vector<const char*> arguments = {"quantd",
                                        "--listen=127.0.0.1:0",
                                        "--http_listen=127.0.0.1:0",
                                        "--threads=2",
                                        "--memory_budget_bytes=1000000000",
                                        "--max_message_bytes=67108864",
                                        "--compress_answers=none",
                                        "--stall_timeout=60",
                                        "--drain_seconds=60",
                                        "--shared_memory_dir=",
                                        "--auth_token_file="};
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  const auto line = server::ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
  server_ = *server::Server::Start(line->options);
}

TestServer::~TestServer() {
  if (!drained_) Drain();
}

void TestServer::Drain() {
  drained_ = true;
  server_->Drain(absl::ZeroDuration());
}

std::unique_ptr<transport::Client> TestServer::Connect(uint32_t window) const {
  const std::string& address = server_->grpc_addresses()[0];
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  constexpr uint16_t kInitialWindowSize = 4;
  return std::make_unique<transport::Client>(
      fd, std::vector<std::pair<uint16_t, uint32_t>>{{kInitialWindowSize, window}});
}

double TestServer::Metric(absl::string_view sample) const {
  const std::string page =
      http::Ask(server_->http_address(), "GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n");
  const std::string line = absl::StrCat("\n", sample, " ");
  const size_t begin = page.find(line);
  return begin == std::string::npos ? std::nan("")
                                    : std::strtod(page.c_str() + begin + line.size(), nullptr);
}

bool TestServer::Until(absl::string_view sample, double value) const {
  double seen = 0;
  const bool so = Within([&] {
    seen = Metric(sample);
    return seen == value;
  });
  EXPECT_TRUE(so) << sample << " is " << seen << ", not " << value;
  return so;
}

Gate::Gate() {
  reached = 0;
  may_pass = kAll;
  before_kernel_for_testing = StandAtTheGate;
}

Gate::~Gate() {
  Open();
  before_kernel_for_testing = nullptr;
}

void Gate::Close() { may_pass = reached.load(); }
void Gate::Open() { may_pass = kAll; }
void Gate::Pass() { may_pass.fetch_add(1); }
bool Gate::Reached(int calls) const {
  return Within([=] { return reached >= calls; });
}
bool Gate::led() const { return last_led; }

std::string Path(absl::string_view method) {
  return absl::StrCat("/quantd.v1.QuantizationService/", method);
}

std::string QuantizeHead(int32_t id, bool compressed) {
  transport::Fields fields;
  if (compressed) fields = {{"grpc-accept-encoding", "gzip"}, {"quantd-compress-answers", "gzip"}};
  return transport::Headers(id, transport::CallFields(Path("Quantize"), fields));
}

void SendBytes(transport::Client& client, int32_t id, const std::string& message, bool ends) {
  EXPECT_TRUE(client.SayFrames(id, transport::Prefixed(message), 16'000, ends));
  EXPECT_TRUE(client.Taken());
}

void Send(transport::Client& client, int32_t id, const google::protobuf::MessageLite& message,
          bool ends) {
  SendBytes(client, id, message.SerializeAsString(), ends);
}

void Begin(transport::Client& client, int32_t id, absl::string_view method,
           const google::protobuf::MessageLite& message, bool ends) {
  client.Say(transport::CallHead(id, Path(method)));
  Send(client, id, message, ends);
}

int Call(transport::Client& client, int32_t id, absl::string_view method,
         const google::protobuf::MessageLite& message) {
  Begin(client, id, method, message);
  return client.Status(id);
}

v1::Tensor Floats(const std::vector<int64_t>& shape, float value) {
  v1::Tensor tensor;
  tensor.set_data_type(v1::DATA_TYPE_FLOAT);
  int64_t count = 1;
  for (const int64_t length : shape) {
    tensor.add_shape(length);
    count *= length;
  }
  const std::vector<float> values(static_cast<size_t>(count), value);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

v1::Tensor FloatValues(const std::vector<int64_t>& shape, float value) {
  v1::Tensor tensor = Floats(shape, value);
  const size_t count = tensor.raw_data().size() / sizeof(float);
  tensor.mutable_float_values()->mutable_values()->Resize(static_cast<int>(count), value);
  return tensor;
}

v1::QuantizeRequest Quantize(v1::Tensor x) {
  v1::QuantizeRequest request;
  *request.mutable_x() = std::move(x);
  *request.mutable_scale() = Floats({});
  return request;
}

}  // namespace quantd::rpc
