#include "wire_testing.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "server/wire/writer.h"

namespace quantd::wire {

uint64_t TestSeed(uint64_t otherwise) {
  const char* text = std::getenv("QUANTD_TEST_SEED");
  const uint64_t seed = text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
  std::printf("QUANTD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

std::vector<uint8_t> ToBytes(const std::string& bytes) { return {bytes.begin(), bytes.end()}; }

BytesView View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

std::string ToString(BytesView bytes) { return {bytes.begin(), bytes.end()}; }

std::string ToString(const memory::Piece& piece) {
  return ToString(BytesView(piece.begin, piece.size));
}

std::string Hex(const std::string& bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

v1::Tensor MakeTensor(v1::DataType type, const std::vector<int64_t>& shape, std::string raw_data) {
  v1::Tensor tensor;
  tensor.set_data_type(type);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  tensor.set_raw_data(std::move(raw_data));
  return tensor;
}

v1::StreamRequest MakeItem(uint64_t id, Method method, const std::string& request) {
  std::string bytes;
  AppendBytesField(Info(method).item_field, request, bytes);
  v1::StreamRequest item;
  if (!item.ParseFromString(bytes)) std::abort();
  item.set_id(id);
  return item;
}

}  // namespace quantd::wire
