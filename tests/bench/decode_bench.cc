// What reading a request costs, and the generated parser's share of it: CPU time, the least of 60
// rounds, which other programs on the machine do not change.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>

#include "quantd/v1/quantization.pb.h"
#include "server/wire/decode.h"

namespace quantd::bench {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The microseconds of one call of `function`.
template <typename Function>
double Least(Function function) {
  constexpr int kCalls = 2000;
  double least = std::numeric_limits<double>::max();
  for (int round = 0; round < 60; ++round) {
    const double begin = CpuSeconds();
    for (int i = 0; i < kCalls; ++i) function();
    least = std::min(least, (CpuSeconds() - begin) / kCalls * 1e6);
  }
  return least;
}

void Measure(int64_t elements) {
  v1::QuantizeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_FLOAT);
  request.mutable_x()->add_shape(elements);
  request.mutable_x()->set_raw_data(std::string(static_cast<size_t>(elements) * 4, 'a'));
  request.mutable_scale()->set_data_type(v1::DATA_TYPE_FLOAT);
  request.mutable_scale()->set_raw_data("aaaa");
  request.set_output_type(v1::DATA_TYPE_INT8);
  const std::string bytes = request.SerializeAsString();
  const wire::BytesView message(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const double decode = Least([&] {
    if (!wire::DecodeRequest(wire::Method::kQuantize, message).ok()) std::abort();
  });
  // What is left for the parser: no bytes of tensors.
  request.mutable_x()->clear_raw_data();
  request.mutable_scale()->clear_raw_data();
  const std::string skeleton = request.SerializeAsString();
  const double parse = Least([&] {
    v1::QuantizeRequest parsed;
    if (!parsed.ParseFromString(skeleton)) std::abort();
  });
  std::printf("Quantize, x of %lld bytes: DecodeRequest %.2f us, of which the parser %.2f us\n",
              static_cast<long long>(4 * elements), decode, parse);
}

}  // namespace
}  // namespace quantd::bench

int main() {
  for (const int64_t elements : {1, 1024}) quantd::bench::Measure(elements);
}
