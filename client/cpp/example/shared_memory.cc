// Quantizes a tensor that is never sent:  client_shared_memory_example ADDRESS DIRECTORY
// The server must run on this node with --shared_memory_dir=DIRECTORY.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "quantd/client/client.h"
#include "quantd/client/shared_region.h"

namespace v1 = quantd::v1;
using quantd::client::Client;
using quantd::client::SharedRegion;
using quantd::client::Tensor;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s ADDRESS DIRECTORY\n", argv[0]);
    return 2;
  }
  Client client(argv[1]);
  constexpr size_t kElements = 1 << 20;
  constexpr size_t kBytes = kElements * sizeof(float);
  const auto region = SharedRegion::Create(kBytes + kElements, argv[2]);
  if (!region.ok()) {
    std::fprintf(stderr, "%s\n", region.status().ToString().c_str());
    return 1;
  }
  for (size_t i = 0; i < kElements; ++i) {
    const float value = std::sin(static_cast<float>(i));
    std::memcpy(&region->span()[i * sizeof(float)], &value, sizeof(value));
  }
  const Tensor x = Tensor::In(region->At(0, kBytes), v1::DATA_TYPE_FLOAT, {1024, 1024});
  const auto result = client.DynamicQuantize(
      x, {.output_type = v1::DATA_TYPE_INT8, .output = region->At(kBytes, kElements)});
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    return 1;
  }
  const auto scale = result->scale.Values<float>();
  if (!scale.ok() || !result->y.shared.has_value()) return 1;
  const auto* const y = reinterpret_cast<const int8_t*>(&region->span()[result->y.shared->offset]);
  for (size_t i = 0; i < 4; ++i) std::printf("%g -> %d\n", std::sin(static_cast<float>(i)), y[i]);
  std::printf("scale %g, %llu bytes in region %.7s\n", scale->front(),
              static_cast<unsigned long long>(result->y.shared->byte_size),
              result->y.shared->region.c_str());
  return 0;
}
