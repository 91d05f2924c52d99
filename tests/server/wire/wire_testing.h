// What the tests of the wire share: seeds, messages cut into slices, buffers as strings.
#ifndef QUANTD_TESTS_SERVER_WIRE_WIRE_TESTING_H_
#define QUANTD_TESTS_SERVER_WIRE_WIRE_TESTING_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "quantd/bytes.h"
#include "quantd/v1/quantization.pb.h"
#include "server/wire/slices.h"

namespace quantd::wire {

using Random = std::mt19937_64;

// A number in [0, end).
inline uint64_t Below(Random& random, uint64_t end) { return random() % end; }
inline bool OneIn(Random& random, uint64_t n) { return Below(random, n) == 0; }

// QUANTD_TEST_SEED, or `otherwise`; printed, so that a failure can be repeated.
uint64_t TestSeed(uint64_t otherwise);

// The message in pieces that end anywhere, empty ones among them.
std::vector<grpc::Slice> Cut(const std::string& message, Random& random);
// In one piece.
SliceList OneSlice(const std::string& message);

std::string ToString(const grpc::ByteBuffer& buffer);
std::string ToString(const ByteChunks& bytes);

// As the bytes of elements.
template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

v1::Tensor MakeTensor(v1::DataType type, const std::vector<int64_t>& shape, std::string raw_data);

}  // namespace quantd::wire

#endif  // QUANTD_TESTS_SERVER_WIRE_WIRE_TESTING_H_
