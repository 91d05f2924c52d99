#include "wire_testing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace quantd::wire {

uint64_t TestSeed(uint64_t otherwise) {
  const char* text = std::getenv("QUANTD_TEST_SEED");
  const uint64_t seed = text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
  std::printf("QUANTD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

std::vector<grpc::Slice> Cut(const std::string& message, Random& random) {
  const uint64_t longest = uint64_t{1} << Below(random, 10);
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < message.size();) {
    const size_t length = std::min(message.size() - at, Below(random, longest + 1));
    slices.emplace_back(message.data() + at, length);
    at += length;
  }
  if (OneIn(random, 8)) slices.emplace_back();
  return slices;
}

SliceList OneSlice(const std::string& message) {
  std::vector<grpc::Slice> slices;
  slices.emplace_back(message.data(), message.size());
  return SliceList(std::move(slices));
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return "not a buffer";
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

std::string ToString(const ByteChunks& bytes) {
  std::string text(bytes.size(), '\0');
  bytes.CopyTo(0, absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size()));
  return text;
}

v1::Tensor MakeTensor(v1::DataType type, const std::vector<int64_t>& shape, std::string raw_data) {
  v1::Tensor tensor;
  tensor.set_data_type(type);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  tensor.set_raw_data(std::move(raw_data));
  return tensor;
}

}  // namespace quantd::wire
