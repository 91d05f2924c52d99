// What the tests of the wire share: seeds, messages as bytes, responses as strings.
#ifndef QUANTD_TESTS_SERVER_WIRE_WIRE_TESTING_H_
#define QUANTD_TESTS_SERVER_WIRE_WIRE_TESTING_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "quantd/v1/quantization.pb.h"
#include "server/memory/buffer.h"
#include "server/wire/method.h"
#include "server/wire/scan.h"

namespace quantd::wire {

using Random = std::mt19937_64;

// A number in [0, end).
inline uint64_t Below(Random& random, uint64_t end) { return random() % end; }
inline bool OneIn(Random& random, uint64_t n) { return Below(random, n) == 0; }

// QUANTD_TEST_SEED, or `otherwise`; printed, so that a failure can be repeated.
uint64_t TestSeed(uint64_t otherwise);

// The bytes in an allocation that ends where they end, so that a sanitizer sees reads beyond them.
std::vector<uint8_t> ToBytes(const std::string& bytes);
// The same bytes, as a view of the string.
BytesView View(const std::string& bytes);

std::string ToString(BytesView bytes);
std::string ToString(const memory::Piece& piece);

// "0a1f...", to show a message in a failure.
std::string Hex(const std::string& bytes);

// The bytes of the elements.
template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

v1::Tensor MakeTensor(v1::DataType type, const std::vector<int64_t>& shape, std::string raw_data);

// The request of an operation as an item of a stream. REQUIRES: `request` is one of the method's.
v1::StreamRequest MakeItem(uint64_t id, Method method, const std::string& request);

}  // namespace quantd::wire

#endif  // QUANTD_TESTS_SERVER_WIRE_WIRE_TESTING_H_
