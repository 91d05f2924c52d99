// Uses an installed quantd::client from C++17:  consumer [ADDRESS]
// With an address it quantizes a tensor and dequantizes it; without, there is no server, and the
// right result is an error.
#include <cstdio>
#include <future>
#include <optional>
#include <vector>

#include "quantd/client/client.h"
#include "quantd/client/shared_region.h"
#include "quantd/client/status.h"

static_assert(__cplusplus == 201703L, "this is a test of C++17");

int main(int argc, char** argv) {
  using quantd::client::Quantized;
  using quantd::client::Tensor;
  quantd::client::ClientOptions client_options;
  client_options.timeout = absl::Seconds(5);
  quantd::client::Client client(argc > 1 ? argv[1] : "127.0.0.1:1", client_options);
  const std::vector<float> values = {-1.5f, 0.0f, 0.25f, 3.0f};
  quantd::client::DynamicQuantizeOptions options;
  options.output_type = quantd::v1::DATA_TYPE_INT8;
  const Tensor x = Tensor::Of<float>(values, {2, 2});
  std::promise<absl::StatusOr<Quantized>> done;
  client.DynamicQuantizeAsync(
      x, options, [&done](absl::StatusOr<Quantized> result) { done.set_value(std::move(result)); });
  const absl::StatusOr<Quantized> result = done.get_future().get();
  if (argc < 2) return absl::IsUnavailable(result.status()) ? 0 : 1;
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    return 1;
  }
  const absl::StatusOr<Tensor> back = client.Dequantize(*result);
  if (!back.ok() || back->Values<float>()->size() != values.size()) return 1;
  std::printf("%g\n", back->Values<float>()->back());
  return 0;
}
