// The C++ client against real servers, for tests/e2e/test_cpp_client.py:
//   split_against_servers compare WHOLE SMALL   the same calls to two servers, one of which accepts
//                                               only small messages; prints what was compared
//   split_against_servers large ADDRESS         one DynamicQuantize of 128 MiB; prints how it ended
//   split_against_servers calls ADDRESS         small calls until its input ends: prints "ready"
//                                               after the first one, then the results, like
//                                               tests/e2e/rollout_clients.py
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "quantd/client/client.h"

namespace v1 = quantd::v1;
using quantd::client::Client;
using quantd::client::DequantizeOptions;
using quantd::client::DynamicQuantizeOptions;
using quantd::client::Granularity;
using quantd::client::Quantized;
using quantd::client::QuantizeOptions;
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

bool Same(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  return a.has_value() == b.has_value() &&
         (!a.has_value() ||
          (a->data_type == b->data_type && a->shape == b->shape && a->data == b->data));
}

bool Same(const Quantized& a, const Quantized& b) {
  const double noise = b.error->mean_squared_error();
  return Same(a.y, b.y) && Same(a.scale, b.scale) && Same(a.zero_point, b.zero_point) &&
         Same(a.tensor_scale, b.tensor_scale) &&
         a.error->saturated_elements() == b.error->saturated_elements() &&
         a.error->max_absolute_error() == b.error->max_absolute_error() &&
         std::fabs(a.error->mean_squared_error() - noise) <= 1e-9 * noise;
}

int Fail(const char* what, const absl::Status& whole, const absl::Status& small) {
  std::printf("%s: %s / %s\n", what, whole.ToString().c_str(), small.ToString().c_str());
  return 1;
}

// One tensor, quantized in three ways and dequantized, by both.
int Compare(Client& whole, Client& small, const char* what, const Tensor& x,
            const DynamicQuantizeOptions& options) {
  const auto a = whole.DynamicQuantize(x, options), b = small.DynamicQuantize(x, options);
  if (!a.ok() || !b.ok() || !Same(*a, *b)) return Fail(what, a.status(), b.status());
  const auto back_a = whole.Dequantize(*a), back_b = small.Dequantize(*b);
  if (!back_a.ok() || !back_b.ok() || !Same(*back_a, *back_b)) {
    return Fail(what, back_a.status(), back_b.status());
  }
  if (a->scale.data_type == v1::DATA_TYPE_FLOAT) {
    QuantizeOptions given;
    given.output_type = options.output_type;
    given.granularity = options.granularity;
    given.report_error = true;
    const auto c = whole.Quantize(x, a->scale, a->zero_point, given);
    const auto d = small.Quantize(x, a->scale, a->zero_point, given);
    if (!c.ok() || !d.ok() || !Same(*c, *d)) return Fail(what, c.status(), d.status());
  }
  std::printf("%s: %zu bytes\n", what, x.data.size());
  return 0;
}

int CompareAll(Client& whole, Client& small) {
  const Tensor matrix = Normal({1500, 1504});
  struct Case {
    const char* what;
    v1::DataType output, scale;
    Granularity granularity;
  };
  const v1::DataType kFloat = v1::DATA_TYPE_FLOAT;
  const Case cases[] = {
      {"tensor", v1::DATA_TYPE_INT8, kFloat, {}},
      {"first axis", v1::DATA_TYPE_UINT8, kFloat, {0, 0, {}}},
      {"last axis", v1::DATA_TYPE_INT4, kFloat, {1, 0, {}}},
      {"blocks", v1::DATA_TYPE_INT4, kFloat, {1, 32, {}}},
      {"tall blocks", v1::DATA_TYPE_UINT2, kFloat, {0, 1000, {}}},
      {"tiles", v1::DATA_TYPE_FLOAT8E4M3FN, kFloat, {{}, 0, {128, 128}}},
      {"large tiles", v1::DATA_TYPE_INT16, kFloat, {{}, 0, {1499, 1000}}},
      {"microscaling", v1::DATA_TYPE_FLOAT8E5M2, v1::DATA_TYPE_FLOAT8E8M0, {1, 32, {}}},
      {"NVFP4", v1::DATA_TYPE_FLOAT4E2M1, v1::DATA_TYPE_FLOAT8E4M3FN, {1, 16, {}}},
  };
  int failed = 0;
  for (const Case& one : cases) {
    DynamicQuantizeOptions options;
    options.output_type = one.output;
    options.scale_type = one.scale;
    options.granularity = one.granularity;
    options.report_error = true;
    failed += Compare(whole, small, one.what, matrix, options);
  }
  return failed;
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
  const std::string command = argc > 2 ? argv[1] : "";
  if (command == "compare" && argc == 4) {
    Client whole(argv[2]), small(argv[3]);
    return CompareAll(whole, small) == 0 ? 0 : 1;
  }
  if (command != "large" && command != "calls") return 2;
  Client client(argv[2]);
  if (command == "calls") {
    CallUntilInputEnds(client);
    return 0;
  }
  const Tensor x{v1::DATA_TYPE_FLOAT, {1 << 25}, std::string(size_t{4} << 25, '\0')};
  const absl::Status status = client.DynamicQuantize(x).status();
  std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
