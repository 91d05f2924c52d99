// What is valid UTF-8, compared with the strings that protobuf accepts.
#include "quantd/utf8.h"

#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <string>

#include "server/wire/writer.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

bool ProtobufTakes(const std::string& text) {
  std::string message;
  AppendBytesField(1, text, message);
  return v1::SharedMemoryReference().ParseFromString(message);
}

// The first and the last byte of every range in the rules, and their neighbours, as the first and
// the second byte of a character, followed by bytes that are valid there and bytes that are not.
TEST(Utf8Test, IsWhatProtobufTakes) {
  const google::protobuf::LogSilencer silencer;
  const std::string bytes =
      "\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5"
      "\xff";
  const std::string ends = "\x7f\x80\xbf\xc0";
  int valid = 0;
  for (const char first : bytes) {
    for (const char second : bytes) {
      for (const char third : ends) {
        for (const char fourth : ends) {
          const std::string text = {first, second, third, fourth};
          size_t expected = text.size();
          while (!ProtobufTakes(text.substr(0, expected))) --expected;
          ASSERT_EQ(ValidUtf8Prefix(text), expected) << Hex(text);
          valid += expected == text.size() ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(valid, 20);
  EXPECT_EQ(ValidUtf8Prefix(""), 0U);
}

}  // namespace
}  // namespace quantd::wire
