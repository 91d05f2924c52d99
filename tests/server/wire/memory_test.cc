// What decoding and encoding allocate: next to nothing for raw tensors, and never more than is
// announced.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "counted_memory.h"
#include "many_messages.h"
#include "server/wire/decode.h"
#include "server/wire/encode.h"
#include "server/wire/split.h"
#include "server/wire/writer.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

MemoryUsed Decode(Method subject, const std::string& message) {
  RestOf(subject, {});  // reads the descriptors, once per process
  return Measure([&] { DecodeRequest(subject, View(message)).IgnoreError(); });
}

uint64_t Said(Method subject, const std::string& message) {
  return DecodeMemoryBytes(RestOf(subject, View(message)));
}

// Besides the fields' contents: the messages that hold them, and the text of an error.
constexpr size_t kFixed = 4096;

constexpr Method kQuantize = Method::kQuantize;
constexpr Method kItem = Method::kStream;

v1::QuantizeRequest Request(int64_t elements) {
  v1::QuantizeRequest request;
  *request.mutable_x() =
      MakeTensor(v1::DATA_TYPE_FLOAT, {elements}, std::string(4 * elements, 'a'));
  *request.mutable_scale() = MakeTensor(v1::DATA_TYPE_FLOAT, {}, "abcd");
  return request;
}

// A bytes field, as on the wire.
std::string Field(uint32_t number, const std::string& bytes) {
  std::string field;
  AppendBytesField(number, bytes, field);
  return field;
}

TEST(WireMemoryTest, DecodeRequestCopiesNoTensor) {
  const std::string request = Request(16 << 20).SerializeAsString();  // x is 64 MiB
  const std::string item = MakeItem(1, Method::kQuantize, request).SerializeAsString();
  EXPECT_LT(Decode(kQuantize, request).peak_bytes, 4096U);
  EXPECT_LT(Decode(kItem, item).peak_bytes, 4096U);
  EXPECT_TRUE(DecodeRequest(Method::kQuantize, View(request)).ok());
  EXPECT_TRUE(DecodeRequest(kItem, View(item)).ok());
  EXPECT_LT(Said(kQuantize, request), kLittleDecodeMemory);
  EXPECT_LT(Said(kItem, item), kLittleDecodeMemory);
}

// And what is said is known before anything is allocated.
TEST(WireMemoryTest, RandomMessagesTakeDecodeMemoryBytes) {
  for (const Method subject : kSubjects) {
    ForManyMessages(subject, 30'000, [&](const std::string& message, bool& accepted) {
      accepted = DecodeRequest(subject, View(message)).status().message().find("truncated") ==
                 std::string::npos;
      uint64_t said = 0;
      ASSERT_EQ(Measure([&] { said = Said(subject, message); }).allocations, 0U);
      ASSERT_LE(RestOf(subject, View(message)).bytes, message.size());
      ASSERT_LE(Decode(subject, message).peak_bytes, said + kFixed);
    });
  }
}

// The message of an attacker who wants the most memory for the fewest bytes: one piece, repeated,
// in the message that contains it.
struct Attack {
  const char* name;
  Method subject;
  std::string piece;
  std::vector<uint32_t> inside;  // numbers of the fields around the pieces, innermost first
};

std::string Repeat(const std::string& piece, size_t times) {
  std::string message;
  message.reserve(piece.size() * times);
  for (size_t i = 0; i < times; ++i) message += piece;
  return message;
}

std::vector<Attack> Attacks() {
  using std::string_literals::operator""s;
  std::string nested;
  for (int i = 0; i < 97; ++i) nested = "\x6b" + nested + "\x6c";
  return {
      {"dimensions one by one", kQuantize, "\x10\x01"s, {1}},
      {"packed dimensions", kQuantize, "\x01"s, {2, 1}},
      {"packed dimensions of 2 bytes", kQuantize, "\x80\x00"s, {2, 1}},
      {"dimensions of blocks one by one", kQuantize, "\x70\x01"s, {}},
      {"packed dimensions of blocks", kQuantize, "\x01"s, {14}},
      {"lists of one dimension", kQuantize, "\x12\x01\x01"s, {1}},
      {"floats one by one", kQuantize, "\x0d????"s, {4, 1}},
      {"packed floats", kQuantize, "????"s, {1, 4, 1}},
      {"packed floats of an item", kItem, "????"s, {1, 4, 2, 2}},
      {"packed floats that cannot be", kQuantize, "???"s, {1, 4, 1}},
      {"lists of one packed float", kQuantize, "\x0a\x04????"s, {4, 1}},
      {"values of one packed float", kQuantize, "\x22\x06\x0a\x04????"s, {1}},
      {"tensors of one packed float", kQuantize, "\x0a\x08\x22\x06\x0a\x04????"s, {}},
      {"tensors of packed floats of an item", kItem, "\x0a\x10\x22\x0e\x0a\x0c????????????"s, {2}},
      {"packed floats where there are none", kQuantize, "????"s, {1, 5, 1}},
      {"integers one by one", kQuantize, "\x08\x01"s, {5, 1}},
      {"packed integers", kQuantize, "\x01"s, {1, 5, 1}},
      {"packed integers of an item", kItem, "\x01"s, {1, 5, 2, 2}},
      {"lists of one integer", kQuantize, "\x2a\x03\x0a\x01\x01"s, {1}},
      {"empty tensors", kQuantize, "\x0a\x00"s, {}},
      {"empty tensors of an item", kItem, "\x0a\x00\x12\x00\x1a\x00\x7a\x00"s, {3}},
      {"contents of every kind", kQuantize, "\x1a\x00\x22\x00\x2a\x00\x32\x00"s, {1}},
      {"raw_data of a byte", kQuantize, "\x1a\x01?"s, {1}},
      {"operations of every kind", kItem, "\x12\x00\x1a\x00\x22\x00"s, {}},
      {"operations with tensors", kItem, "\x12\x02\x0a\x00\x1a\x02\x0a\x00"s, {}},
      {"ids", kItem, "\x08\x01"s, {}},
      {"a region's name", kQuantize, "?"s, {1, 6, 1}},
      {"an output's region", kQuantize, "?"s, {1, 11}},
      {"unknown numbers", kQuantize, "\x68\x00"s, {}},
      {"unknown 4 bytes", kQuantize, "\x6d????"s, {}},
      {"unknown empty bytes", kQuantize, "\x6a\x00"s, {}},
      {"unknown empty bytes of an item", kItem, "\x12\x00"s, {4}},
      {"unknown single bytes", kQuantize, "\x6a\x01?"s, {}},
      {"unknown bytes", kQuantize, "\x6a\x10????????????????"s, {}},
      {"unknown empty bytes of a region", kQuantize, "\x6a\x00"s, {6, 1}},
      {"unknown numbers of an output", kItem, "\x68\x00"s, {11, 2}},
      {"unknown groups", kQuantize, "\x6b\x6c"s, {}},
      {"unknown groups of an item's tensor", kItem, "\x0b\x0c"s, {1, 2}},
      {"unknown groups in each other", kQuantize, nested, {}},
      {"types as bytes", kQuantize, "\x0a\x00"s, {1}},
      {"values as groups", kQuantize, "\x0b\x0c"s, {4, 1}},
      {"values as empty bytes", kItem, "\x12\x00"s, {5, 1, 2}},
      {"unknown fields of large numbers", kQuantize, "\xfa\xff\xff\xff\x0f\x00"s, {}},
  };
}

TEST(WireMemoryTest, AttackersTakeDecodeMemoryBytes) {
  // The first error builds the parser's descriptors, once per process.
  Decode(kQuantize, "\x0a");
  Decode(kItem, "\x0a");
  for (const Attack& attack : Attacks()) {
    // Lists double: one value more than a power of two has the old list beside the new one.
    for (const size_t pieces : {100U, 1000U, 4097U, 16385U, 65536U, 65537U, 131073U}) {
      if (pieces * attack.piece.size() > (4 << 20)) continue;
      std::string message = Repeat(attack.piece, pieces);
      for (const uint32_t number : attack.inside) message = Field(number, message);
      for (const char* const end : {"", "\x0a"}) {  // if cut off, the parser refuses it
        const MemoryUsed used = Decode(attack.subject, message + end);
        EXPECT_LE(used.peak_bytes, Said(attack.subject, message + end) + kFixed)
            << attack.name << ", " << pieces << " times: "
            << static_cast<double>(used.peak_bytes) / static_cast<double>(message.size())
            << " for each byte";
      }
    }
  }
}

// The parser reserves what a length promises, up to 50 MB, if the length of the message around it
// promises as much. None of these bytes exist.
TEST(WireMemoryTest, LyingLengthsTakeNothing) {
  const std::string promise = "\x80\x80\x80\x40";     // a length of 2^27
  const std::string bytes = "\x1a\x80\xe1\xeb\x17";   // raw_data of 50 MB
  const std::string region = "\x0a\x80\xe1\xeb\x17";  // a region's name
  const std::string unknown = "\x6a\x80\xe1\xeb\x17";
  const std::string padding(64, 'x');
  for (const std::string& start :
       {"\x0a" + promise + bytes, "\x0a" + promise + unknown, "\x5a" + promise + region,
        "\x0a" + promise + "\x32" + promise + region,
        "\x0a" + promise + "\x22" + promise + unknown}) {
    for (const std::string& message : {start, start + padding}) {
      const std::string in_item = "\x12" + promise + message;
      const std::string whole_item = Field(2, message);
      Decode(kQuantize, message);  // allocates what only the first one needs
      EXPECT_LT(Decode(kQuantize, message).peak_bytes, kFixed) << Hex(message);
      Decode(kItem, in_item);
      EXPECT_LT(Decode(kItem, in_item).peak_bytes, kFixed) << Hex(in_item);
      EXPECT_LT(Decode(kItem, whole_item).peak_bytes, kFixed) << Hex(whole_item);
    }
  }
}

// Valid values take more than refused ones, because they are packed as well.
TEST(WireMemoryTest, GoodValuesTakeDecodeMemoryBytes) {
  for (const size_t count : {1000U, 65536U, 65537U, 131073U}) {
    const std::string floats = Field(4, Field(1, Repeat({"\0\0\x80\x3f", 4}, count)));
    const std::string integers = Field(5, Field(1, Repeat("\x01", count)));
    const std::string one_by_one = Field(5, Repeat("\x08\x01", count));
    for (const auto& [type, values] :
         {std::pair(v1::DATA_TYPE_FLOAT, floats), std::pair(v1::DATA_TYPE_UINT2, integers),
          std::pair(v1::DATA_TYPE_UINT2, one_by_one), std::pair(v1::DATA_TYPE_INT8, integers),
          std::pair(v1::DATA_TYPE_INT8, one_by_one), std::pair(v1::DATA_TYPE_INT32, integers),
          std::pair(v1::DATA_TYPE_INT32, one_by_one)}) {
      v1::Tensor zero_point;
      zero_point.set_data_type(type);
      zero_point.add_shape(static_cast<int64_t>(count));
      const std::string message =
          Request(1).SerializeAsString() + Field(3, zero_point.SerializeAsString() + values);
      ASSERT_TRUE(DecodeRequest(kQuantize, View(message)).ok());
      EXPECT_LE(Decode(kQuantize, message).peak_bytes, Said(kQuantize, message) + kFixed);
    }
  }
}

TEST(WireMemoryTest, ResponsesOfValuesTakeResponseMemoryBytes) {
  for (const DataTypeInfo& type : kDataTypes) {
    for (const int64_t elements : {0, 1, 1000, 1 << 20}) {
      ResponseLayout layout;
      layout.encoding = Encoding::kValues;
      layout.y = {type.type, {elements}, elements, ByteSize(type.type, elements)};
      memory::Pool pool;
      size_t pieces = 0;
      const MemoryUsed used = Measure([&] {
        Response response(layout, pool);
        for (uint8_t& byte : response.contents().y) byte = 0xff;  // the longest integers
        const memory::Piece piece = std::move(response).FinishItem(~uint64_t{0});
        pieces = layout.y.bytes + piece.size;  // at the same time at the end
        ASSERT_GT(piece.size, static_cast<size_t>(elements));
      });
      EXPECT_LE(used.peak_bytes + pieces, ResponseMemoryBytes(layout) + kFixed)
          << type.name << ", " << elements;
    }
  }
}

}  // namespace
}  // namespace quantd::wire
