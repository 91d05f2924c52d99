// The C++ client against real servers, for tests/e2e/test_cpp_client.py:
//   split_against_servers large ADDRESS   one Quantize of 32 MiB; prints how it ended
//   split_against_servers calls ADDRESS   small calls until its input ends: prints "ready" after
//                                         the first one, then the results, like
//                                         tests/e2e/rollout_clients.py
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "quantd/client/client.h"

using quantd::client::Client;
using quantd::client::Tensor;

namespace {

Tensor Normal(std::vector<int64_t> shape) {
  size_t elements = 1;
  for (const int64_t length : shape) elements *= static_cast<size_t>(length);
  std::mt19937 engine(17);
  std::normal_distribution<float> normal;
  std::vector<float> values(elements);
  for (float& value : values) value = normal(engine);
  return Tensor::Of<float>(values, std::move(shape));
}

void CallUntilInputEnds(Client& client) {
  std::atomic<bool> ended{false};
  std::thread input;
  const Tensor x = Normal({8});
  int answered = 0;
  std::map<std::string, int> lost;
  while (!ended) {
    const absl::Status status = client.DynamicQuantize(x).status();
    status.ok() ? ++answered : ++lost[std::string(status.message())];
    if (!input.joinable()) {
      std::printf("ready\n");
      std::fflush(stdout);
      input = std::thread([&ended] {
        while (std::getchar() != EOF) continue;
        ended = true;
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  input.join();
  std::string reasons;
  for (const auto& [reason, count] : lost) {
    reasons += (reasons.empty() ? "\"" : ", \"") + reason + "\": " + std::to_string(count);
  }
  std::printf("{\"quantd::client::Client (C++)\": {\"answered\": %d, \"lost\": {%s}}}\n", answered,
              reasons.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc == 3 ? argv[1] : "";
  if (command != "large" && command != "calls") return 2;
  Client client(argv[2]);
  if (command == "calls") {
    CallUntilInputEnds(client);
    return 0;
  }
  const Tensor x = Tensor::Of<float>(std::vector<float>(1 << 23, 3), {1 << 23});
  const auto result = client.Quantize(x, Tensor::Scalar<float>(1));
  if (result.ok() && result->y.data != std::string(1 << 23, '\3')) std::printf("wrong ");
  std::printf("%s\n", result.status().ToString().c_str());
  return result.ok() ? 0 : 1;
}
