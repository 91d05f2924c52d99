// Requests without a message: any types, shapes, axes, blocks and tensors, chosen by any bytes.
#ifndef QUANTD_TESTS_FUZZ_PARAMETERS_H_
#define QUANTD_TESTS_FUZZ_PARAMETERS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "quantd/shape.h"
#include "server/wire/request.h"
#include "wire_testing.h"

namespace quantd::fuzz {

// Bytes for Parameters, of which a plan accepts many.
std::string ParameterBytes(wire::Random& random);

// A tensor with as many bytes as its type and shape need, which last as long as the program; with
// none if that is more than a MiB.
TensorView ViewOf(DataType type, const Shape& shape);

class Parameters {
 public:
  explicit Parameters(wire::BytesView bytes);
  // Views tensors that this object owns.
  const wire::Request& request() const { return request_; }

 private:
  std::deque<std::vector<uint8_t>> kept_;
  wire::Request request_;
};

}  // namespace quantd::fuzz

#endif  // QUANTD_TESTS_FUZZ_PARAMETERS_H_
