// Fields that we write, compared with protobuf's own writer.
#include "server/wire/writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "wire_testing.h"

namespace quantd::wire {
namespace {

TEST(WriterTest, FieldsAreWhatProtobufWrites) {
  Random random(TestSeed(20261123));
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<uint32_t>(1 + (random() >> (36 + Below(random, 28))));
    const uint64_t value = random() >> Below(random, 64);
    const std::string bytes(Below(random, 300), 'b');
    google::protobuf::UnknownFieldSet expected;
    expected.AddVarint(static_cast<int>(number), value);
    expected.AddLengthDelimited(static_cast<int>(number), bytes);
    std::string text;
    ASSERT_TRUE(expected.SerializeToString(&text));

    std::string appended;
    AppendBytesField(number, bytes, appended);
    ASSERT_EQ(appended, text.substr(text.size() - appended.size())) << number << ", " << value;

    std::string written(text.size(), '\0');
    auto* const begin = reinterpret_cast<uint8_t*>(written.data());
    Writer writer(begin);
    writer.VarintField(number, value);
    writer.BytesHeader(number, bytes.size());
    std::memcpy(writer.position(), bytes.data(), bytes.size());
    writer.Skip(bytes.size());
    ASSERT_EQ(writer.position(), begin + text.size());
    ASSERT_EQ(written, text) << number << ", " << value;
  }
}

}  // namespace
}  // namespace quantd::wire
