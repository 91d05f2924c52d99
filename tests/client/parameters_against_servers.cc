// Stored parameters in the C++ client, at one server after another, for
// tests/e2e/test_cpp_client.py:
//
//   parameters_against_servers ADDRESS...
//
// Prints the reference in each server's responses. Every response must equal that to a request with
// the fields written out, even if a server does not have the set when it is called.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "quantd/client/client.h"
#include "quantd/client/parameters.h"

namespace {

using namespace quantd::client;  // NOLINT(google-build-using-namespace)
namespace v1 = quantd::v1;

int Fail(const std::string& what, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), status.ToString().c_str());
  return 1;
}

void Set(const Tensor& from, v1::Tensor* to) {
  to->set_data_type(from.data_type);
  to->mutable_shape()->Add(from.shape.begin(), from.shape.end());
  to->set_raw_data(from.data);
}

int Run(const std::string& address) {
  const std::vector<float> values = {-1, 0.25F, 3, 100, -100, 2};
  const Tensor x = Tensor::Of<float>(values, {2, 3});
  const std::vector<float> scales = {0.5F, 0.25F, 2};
  const Tensor scale = Tensor::Of<float>(scales, {3});
  const std::vector<int8_t> zero_points = {1, 2, -3};
  const Tensor zero_point = Tensor::Of<int8_t>(zero_points, {3});
  v1::ParameterSet set;
  Set(scale, set.mutable_quantize()->mutable_scale());
  Set(zero_point, set.mutable_quantize()->mutable_zero_point());

  Client client(address);
  const absl::StatusOr<Quantized> inline_result = client.Quantize(x, scale, zero_point);
  if (!inline_result.ok()) return Fail("inline", inline_result.status());
  // A complete reference that no server has yet: the helper notices that, puts the set and retries.
  StoredParameters stored(client, "cpp", set);
  bool asked_in_vain = false;
  const auto quantize = [&](const std::string& reference) -> absl::StatusOr<Quantized> {
    QuantizeOptions options;
    options.parameters = reference;
    if (!std::exchange(asked_in_vain, true)) {
      options.parameters.back() = options.parameters.back() == '0' ? '1' : '0';
    }
    return client.Quantize(x, Tensor(), std::nullopt, options);
  };
  const absl::StatusOr<Quantized> result = stored.Use(quantize);
  if (!result.ok()) return Fail("quantize", result.status());
  if (result->y.data != inline_result->y.data || result->parameters.empty()) {
    return Fail("quantize", absl::InternalError("another answer"));
  }
  const absl::StatusOr<Tensor> back = client.Dequantize(*result);
  const absl::StatusOr<Tensor> inline_back = client.Dequantize(*inline_result);
  if (!back.ok()) return Fail("dequantize", back.status());
  if (!inline_back.ok() || back->data != inline_back->data) {
    return Fail("dequantize", absl::InternalError("another answer"));
  }
  const absl::StatusOr<v1::GetParametersResponse> found = client.GetParameters(result->parameters);
  if (!found.ok()) return Fail("get", found.status());
  const absl::StatusOr<std::vector<std::string>> listed = client.ListParameters("cpp@");
  if (!listed.ok() || listed->size() != 1 || listed->front() != result->parameters ||
      found->parameters().SerializeAsString() != set.SerializeAsString()) {
    return Fail("list", listed.status());
  }
  QuantizeOptions both;
  both.parameters = result->parameters;
  const absl::Status conflict = client.Quantize(x, scale, std::nullopt, both).status();
  if (!absl::IsInvalidArgument(conflict) || ParametersAreMissing(conflict)) {
    return Fail("both", conflict);
  }
  std::printf("%s\n", result->parameters.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (const int failed = Run(argv[i]); failed != 0) return failed;
  }
  return 0;
}
