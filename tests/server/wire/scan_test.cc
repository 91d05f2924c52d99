// The wire format, field by field: what is read, what is refused, and at which byte. Also against
// the generated parser of a message without fields, which accepts the same bytes as a Scanner.
#include "server/wire/scan.h"

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "wire_testing.h"

namespace quantd::wire {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;
using std::string_literals::operator""s;
using Strings = std::vector<std::string>;

std::string Describe(uint32_t number, int type, const std::string& payload) {
  const std::string text = std::to_string(number) + ":" + std::to_string(type);
  return type == 2 ? text + "=" + payload : text;
}

// The fields as "number:type", with "=payload" if they have one; and the bytes that are left.
struct Scanned {
  bool ok = false;
  Strings fields;
  std::string rest;  // the bytes after the last field
};

Scanned Scan(const std::string& message) {
  const std::vector<uint8_t> bytes = ToBytes(message);
  Scanned scanned;
  Scanner scanner(bytes);
  Field field;
  size_t at = 0;
  while (scanner.Next(field)) {
    EXPECT_TRUE(scanner.ok());
    scanned.fields.push_back(
        Describe(field.number, static_cast<int>(field.type), ToString(field.payload)));
    // Fields follow each other without a gap, and a payload ends where its field ends.
    EXPECT_EQ(field.whole.data(), bytes.data() + at);
    at += field.whole.size();
    if (field.type == WireType::kBytes) {
      EXPECT_EQ(field.payload.data() + field.payload.size(), bytes.data() + at);
    } else {
      EXPECT_TRUE(field.payload.empty());
    }
  }
  scanned.ok = scanner.ok();
  EXPECT_FALSE(scanner.Next(field));  // it stays at the end
  EXPECT_EQ(scanner.ok(), scanned.ok);
  scanned.rest = message.substr(at);
  EXPECT_EQ(scanned.ok, at == message.size());
  return scanned;
}

// What protobuf reads as unknown fields.
Scanned Parse(const std::string& message) {
  Scanned parsed;
  v1::GetServerInfoRequest empty;
  parsed.ok = empty.ParseFromString(message);
  if (!parsed.ok) return parsed;
  const UnknownFieldSet& fields = empty.GetReflection()->GetUnknownFields(empty);
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    constexpr int kWireTypes[] = {0, 5, 1, 2, 3};  // of UnknownField::Type
    const int type = kWireTypes[field.type()];
    parsed.fields.push_back(Describe(static_cast<uint32_t>(field.number()), type,
                                     type == 2 ? field.length_delimited() : ""));
  }
  return parsed;
}

void ExpectAsParsed(const std::string& message) {
  const Scanned scanned = Scan(message);
  const Scanned parsed = Parse(message);
  ASSERT_EQ(scanned.ok, parsed.ok) << Hex(message);
  if (!parsed.ok) return;
  ASSERT_EQ(scanned.fields, parsed.fields) << Hex(message);
}

TEST(ScannerTest, ReadsGroupsToADepthOfAHundred) {
  for (int depth = 1; depth <= 103; ++depth) {
    std::string message;
    for (int i = 0; i < depth; ++i) message += i % 2 == 0 ? "\x0b" : "\x13";
    for (int i = depth; i-- > 0;) message += i % 2 == 0 ? "\x0c" : "\x14";
    const Scanned scanned = Scan(message);
    EXPECT_EQ(scanned.ok, depth <= 100) << depth;
    EXPECT_EQ(scanned.rest, depth <= 100 ? "" : message);
    ExpectAsParsed(message);
    ExpectAsParsed(message + message);
    // Side by side there may be any number of them.
    EXPECT_EQ(Scan("\x0b"s + "\x13\x14\x13\x14" + "\x0c" + message).ok, depth <= 100);
  }
}

// A client chooses the depth of nesting, so it must not cost stack.
TEST(ScannerTest, AMillionOpenGroupsAreRefused) {
  EXPECT_FALSE(Scan(std::string(1 << 20, '\x0b')).ok);
  EXPECT_FALSE(Scan(std::string(1 << 20, '\x0b') + std::string(1 << 20, '\x0c')).ok);
}

TEST(ScannerTest, AgreesWithTheParserOnAllShortMessages) {
  const google::protobuf::LogSilencer silencer;
  for (int a = 0; a < 256; ++a) {
    ExpectAsParsed(std::string(1, static_cast<char>(a)));
    for (int b = 0; b < 256; ++b) {
      ExpectAsParsed({static_cast<char>(a), static_cast<char>(b)});
    }
  }
  // Up to 5 bytes, from those with the most meanings.
  constexpr unsigned char kBytes[] = {0x00, 0x01, 0x02, 0x08, 0x0a, 0x0b, 0x0c, 0x0d, 0x13, 0x80};
  for (size_t i = 0; i < 100'000; ++i) {
    std::string message;
    for (size_t left = i; message.size() < 5; left /= std::size(kBytes)) {
      message.push_back(static_cast<char>(kBytes[left % std::size(kBytes)]));
    }
    ExpectAsParsed(message);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace quantd::wire
