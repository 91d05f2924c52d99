// The wire format, field by field: what is read, what is refused, and at which byte. Also against
// the generated parser of a message without fields, which accepts the same bytes as a Scanner.
#include "server/wire/scan.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "message_generator.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;
using std::string_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

std::string Describe(uint32_t number, int type, const std::string& payload) {
  const std::string text = std::to_string(number) + ":" + std::to_string(type);
  return type == 2 ? text + "=" + payload : text;
}

// The fields as "number:type", with "=payload" if they have one; and the bytes that are left.
struct Scanned {
  bool ok = false;
  Strings fields;
  std::string rest;
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
  scanned.rest = ToString(scanner.rest());
  EXPECT_EQ(scanned.rest, message.substr(at));
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

// One field of each kind, and its description.
struct Kind {
  std::string bytes;
  std::string reads;
};
const std::vector<Kind>& Kinds() {
  static const auto* const kinds = new std::vector<Kind>{
      {"\x08\x96\x01"s, "1:0"},
      {"\x11\x01\x02\x03\x04\x05\x06\x07\xff"s, "2:1"},
      {"\x1a\x03ijk"s, "3:2=ijk"},
      {"\x1a\x00"s, "3:2="},
      {"\x23\x24"s, "4:3"},
      {"\x23\x08\x01\x2a\x01z\x31\x08\x07\x06\x05\x04\x03\x02\x01\x3d\x0b\x0c\x0e\x0d\x3b\x3c\x24"s,
       "4:3"},
      {"\x35\x01\x02\x03\xff"s, "6:5"},
      {"\xf8\xff\xff\xff\x0f\x05"s, "536870911:0"},
  };
  return *kinds;
}

TEST(ScannerTest, ReadsEveryWireType) {
  std::string message;
  Strings reads;
  for (const Kind& kind : Kinds()) {
    message += kind.bytes;
    reads.push_back(kind.reads);
    EXPECT_THAT(Scan(kind.bytes).fields, ElementsAre(kind.reads));
    ExpectAsParsed(kind.bytes);
  }
  const Scanned scanned = Scan(message);
  EXPECT_TRUE(scanned.ok);
  EXPECT_EQ(scanned.fields, reads);
}

TEST(ScannerTest, NothingIsAMessage) {
  Scanner scanner({});
  Field field;
  EXPECT_FALSE(scanner.Next(field));
  EXPECT_TRUE(scanner.ok());
}

TEST(ScannerTest, IsNamesNumberAndType) {
  const std::string message = "\x1a\x01x"s;
  Scanner scanner(View(message));
  Field field;
  ASSERT_TRUE(scanner.Next(field));
  EXPECT_TRUE(field.Is(3, WireType::kBytes));
  EXPECT_FALSE(field.Is(3, WireType::kVarint));
  EXPECT_FALSE(field.Is(2, WireType::kBytes));
}

// A field that is cut anywhere is refused, and the fields before it are read.
TEST(ScannerTest, RefusesEveryCut) {
  const std::string before = "\x08\x01"s;
  for (const Kind& kind : Kinds()) {
    for (size_t size = 1; size < kind.bytes.size(); ++size) {
      const std::string cut = kind.bytes.substr(0, size);
      const Scanned scanned = Scan(before + cut);
      EXPECT_FALSE(scanned.ok) << Hex(cut);
      EXPECT_THAT(scanned.fields, ElementsAre("1:0")) << Hex(cut);
      EXPECT_EQ(scanned.rest, cut);
      ExpectAsParsed(before + cut);
    }
  }
}

TEST(ScannerTest, ReadsOverlongVarints) {
  // Tags: 5 bytes at most; bits past the 32nd are dropped.
  EXPECT_THAT(Scan("\x88\x80\x80\x80\x00\x01"s).fields, ElementsAre("1:0"));
  EXPECT_THAT(Scan("\x88\x80\x80\x80\x70\x01"s).fields, ElementsAre("1:0"));
  EXPECT_FALSE(Scan("\x88\x80\x80\x80\x80\x00\x01"s).ok);
  // Values: 10 bytes.
  EXPECT_THAT(Scan("\x08"s + std::string(9, '\xff') + "\x7f").fields, ElementsAre("1:0"));
  EXPECT_FALSE(Scan("\x08"s + std::string(10, '\xff') + "\x01").ok);
  // Lengths: 5 bytes, below 2^31.
  EXPECT_THAT(Scan("\x1a\x82\x80\x80\x80\x00xy"s).fields, ElementsAre("3:2=xy"));
  EXPECT_FALSE(Scan("\x1a\x82\x80\x80\x80\x08xy"s).ok);
  EXPECT_FALSE(Scan("\x1a\x82\x80\x80\x80\x10xy"s).ok);  // 2 and bit 32, which is not dropped
  EXPECT_FALSE(Scan("\x1a\x82\x80\x80\x80\x80\x00xy"s).ok);
  for (int size = 1; size <= 12; ++size) {
    for (const int last : {0, 1, 7, 8, 0x0f, 0x10, 0x70, 0x7f}) {
      const std::string varint = std::string(size - 1, '\x80') + static_cast<char>(last);
      std::string tag = varint;
      tag[0] = static_cast<char>(tag[0] | 0x28);  // of a number that is not 0
      ExpectAsParsed("\x08"s + varint);
      ExpectAsParsed("\x1a"s + varint);
      ExpectAsParsed("\x1a"s + varint + std::string(8, 'x'));
      ExpectAsParsed(tag + "\x01");
      ExpectAsParsed("\x23"s + tag + "\x01\x24");
    }
  }
}

TEST(ScannerTest, RefusesWhatIsNoField) {
  for (const std::string& message : {
           "\x00\x01"s,              // number 0
           "\x02\x00"s,              //
           "\x80\x80\x80\x80\x10"s,  // number 0 when the bits past the 32nd are dropped
           "\x0c"s,                  // an end without a start
           "\x0e"s,                  // wire types 6 and 7
           "\x0f"s,                  //
           "\x0b\x14"s,              // a group that ends with another's number
           "\x0b\x13\x0c\x14"s,      // crossed groups
           "\x0b\x00\x0c"s,          // number 0 inside of a group
           "\x0b\x0e\x0c"s,          // wire type 6 inside of a group
       }) {
    const Scanned scanned = Scan(message);
    EXPECT_FALSE(scanned.ok) << Hex(message);
    EXPECT_THAT(scanned.fields, IsEmpty()) << Hex(message);
    ExpectAsParsed(message);
  }
}

// A length is compared with the bytes that are left before it is used.
TEST(ScannerTest, RefusesLengthsBeyondTheEnd) {
  for (const uint32_t length : {4U, 5U, 127U, 128U, 0x7fffffefU, 0x7ffffff0U, 0x7fffffffU,
                                0x80000000U, 0xfffffff0U, 0xffffffffU}) {
    std::string message = "\x1a"s;
    uint32_t left = length;
    for (; left >= 0x80; left >>= 7) message.push_back(static_cast<char>(left | 0x80));
    message.push_back(static_cast<char>(left));
    message += "abc";
    EXPECT_FALSE(Scan(message).ok) << length;
    ExpectAsParsed(message);
    // In a group, a length of 4 reaches beyond the group's end, a larger one beyond the message's.
    const std::string grouped = "\x0b"s + message + "\x0c";
    EXPECT_FALSE(Scan(grouped).ok) << length;
    ExpectAsParsed(grouped);
  }
}

TEST(ScannerTest, ReadsGroupsToADepthOfAHundred) {
  for (int depth = 1; depth <= 103; ++depth) {
    std::string message;
    for (int i = 0; i < depth; ++i) message += i % 2 == 0 ? "\x0b" : "\x13";
    for (int i = depth; i-- > 0;) message += i % 2 == 0 ? "\x0c" : "\x14";
    const Scanned scanned = Scan(message);
    EXPECT_EQ(scanned.ok, depth <= 100) << depth;
    EXPECT_THAT(scanned.rest, depth <= 100 ? "" : message);
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

TEST(ScannerTest, AgreesWithTheParserOnRandomMessages) {
  const uint64_t seed = TestSeed(20261122);
  int accepted = 0;
  constexpr int kMessages = 30'000;
  for (int i = 0; i < kMessages; ++i) {
    Random random(seed + i);
    std::string message = RandomMessage(*v1::QuantizeRequest::descriptor(), random);
    if (OneIn(random, 2)) message = Mutate(std::move(message), random);
    ExpectAsParsed(message);
    accepted += Scan(message).ok ? 1 : 0;
    if (HasFailure()) FAIL() << "QUANTD_TEST_SEED=" << seed + i << ", message 0 of it";
  }
  EXPECT_GT(accepted, kMessages / 4);
  EXPECT_LT(accepted, kMessages * 19 / 20);
}

}  // namespace
}  // namespace quantd::wire
