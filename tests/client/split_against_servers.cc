// The C++ client against real servers, for tests/e2e/test_cpp_client.py:
//   split_against_servers ADDRESS   one Quantize of 32 MiB; prints how it ended
#include <cstdio>
#include <string>
#include <vector>

#include "quantd/client/client.h"

int main(int argc, char** argv) {
  using quantd::client::Tensor;
  if (argc != 2) return 2;
  quantd::client::Client client(argv[1]);
  const Tensor x = Tensor::Of<float>(std::vector<float>(1 << 23, 3), {1 << 23});
  const auto result = client.Quantize(x, Tensor::Scalar<float>(1));
  if (result.ok() && result->y.data != std::string(1 << 23, '\3')) std::printf("wrong ");
  std::printf("%s\n", result.status().ToString().c_str());
  return result.ok() ? 0 : 1;
}
