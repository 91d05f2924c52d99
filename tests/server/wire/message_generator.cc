#include "message_generator.h"

#include <algorithm>

namespace quantd::wire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// The bytes of a varint, sometimes more than it needs.
std::string Varint(uint64_t value, Random& random, size_t longest = 10) {
  std::string bytes;
  while (value >= 0x80) {
    bytes.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<char>(value));
  if (OneIn(random, 16) && bytes.size() < longest) {
    const size_t size = bytes.size() + 1 + Below(random, longest - bytes.size());
    while (bytes.size() < size) {
      bytes.back() = static_cast<char>(bytes.back() | 0x80);
      bytes.push_back(0);
    }
    // Bits that no 64-bit (or in a tag 32-bit) number has.
    if (bytes.size() == longest && OneIn(random, 2)) {
      bytes.back() = static_cast<char>(Below(random, 8) << 4);
    }
  }
  return bytes;
}

std::string Tag(uint64_t number, uint64_t type, Random& random) {
  return Varint(number << 3 | type, random, 5);
}

std::string Delimited(const std::string& bytes, Random& random) {
  uint64_t length = bytes.size();
  if (OneIn(random, 300)) length += Below(random, 4);  // a little past its end
  return Varint(length, random, 5) + bytes;
}

std::string Fixed(size_t size, Random& random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Small, huge or negative.
uint64_t Integer(Random& random) {
  switch (Below(random, 6)) {
    case 0:
      return random();
    case 1:
      return -Below(random, 300);
    case 2:
      return Below(random, uint64_t{1} << 33);
    default:
      return Below(random, 30);
  }
}

std::string Text(Random& random) {
  static const char* const kTexts[] = {
      "region",           "",         "\xc3\xa9",         "\xe2\x82\xac",     "\xf0\x9f\x98\x80",
      "\xed\xa0\x80",     "\xc0\x80", "\xf4\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xff",
      "\xe0\x9f\xbf",     "\xc3",     "\xf0\x8f\xbf\xbf", "\xef\xbf\xbd",     "\xed\x9f\xbf",
      "\xf0\x90\x80\x80", "\x7f"};
  std::string text = kTexts[OneIn(random, 4) ? Below(random, std::size(kTexts)) : 0];
  if (OneIn(random, 30)) text = Fixed(Below(random, 6), random);
  return text;
}

std::string RandomField(const Descriptor& type, int depth, Random& random);

std::string Group(int depth, Random& random) {
  // Sometimes as deep as the limit, which is 100 nested messages and groups, and beyond.
  int levels = OneIn(random, 60) ? 95 + static_cast<int>(Below(random, 8)) : 1;
  std::string inside;
  if (levels == 1 && depth < 6) {
    while (OneIn(random, 2)) inside += RandomField(*v1::Tensor::descriptor(), depth + 1, random);
  }
  for (; levels > 0; --levels) {
    const uint64_t number = 1 + Below(random, 40);
    const uint64_t end = OneIn(random, 400) ? number + 1 : number;
    inside = Tag(number, 3, random) + inside + Tag(end, 4, random);
  }
  return inside;
}

std::string UnknownField(uint64_t number, int depth, Random& random) {
  switch (Below(random, 5)) {
    case 0:
      return Tag(number, 0, random) + Varint(Integer(random), random);
    case 1:
      return Tag(number, 1, random) + Fixed(8, random);
    case 2:
      return Tag(number, 2, random) + Delimited(Fixed(Below(random, 20), random), random);
    case 3:
      return Group(depth, random);
    default:
      return Tag(number, 5, random) + Fixed(4, random);
  }
}

bool IsFixed32(const FieldDescriptor& field) { return field.type() == FieldDescriptor::TYPE_FLOAT; }

std::string Value(const FieldDescriptor& field, Random& random) {
  return IsFixed32(field) ? Fixed(4, random) : Varint(Integer(random), random);
}

std::string KnownField(const FieldDescriptor& field, int depth, Random& random) {
  const uint64_t number = field.number();
  if (field.message_type() != nullptr) {
    std::string inside;
    const uint64_t fields = Below(random, 7);
    for (uint64_t i = 0; i < fields; ++i) {
      inside += RandomField(*field.message_type(), depth + 1, random);
    }
    return Tag(number, 2, random) + Delimited(inside, random);
  }
  if (field.type() == FieldDescriptor::TYPE_STRING) {
    return Tag(number, 2, random) + Delimited(Text(random), random);
  }
  if (field.type() == FieldDescriptor::TYPE_BYTES) {
    const uint64_t size = OneIn(random, 10) ? Below(random, 2000) : Below(random, 24);
    return Tag(number, 2, random) + Delimited(Fixed(size, random), random);
  }
  if (field.is_repeated() && !OneIn(random, 3)) {
    std::string packed;
    const uint64_t count = OneIn(random, 20) ? Below(random, 100) : Below(random, 5);
    for (uint64_t i = 0; i < count; ++i) packed += Value(field, random);
    return Tag(number, 2, random) + Delimited(packed, random);
  }
  return Tag(number, IsFixed32(field) ? 5 : 0, random) + Value(field, random);
}

std::string RandomField(const Descriptor& type, int depth, Random& random) {
  if (OneIn(random, 12)) {
    uint64_t number = 1 + Below(random, 20);
    if (OneIn(random, 4)) number = Below(random, uint64_t{1} << 29);
    return UnknownField(number, depth, random);  // also with a known number and another type
  }
  return KnownField(*type.field(static_cast<int>(Below(random, type.field_count()))), depth,
                    random);
}

}  // namespace

std::string RandomMessage(const Descriptor& type, Random& random) {
  std::string message;
  const uint64_t fields = Below(random, 10);
  for (uint64_t i = 0; i < fields; ++i) message += RandomField(type, 0, random);
  return message;
}

std::string Mutate(std::string message, Random& random) {
  const uint64_t times = 1 + Below(random, OneIn(random, 4) ? 8 : 2);
  for (uint64_t i = 0; i < times && !message.empty(); ++i) {
    const size_t at = Below(random, message.size());
    const size_t length = std::min<size_t>(Below(random, 12), message.size() - at);
    switch (Below(random, 6)) {
      case 0:
        message[at] = static_cast<char>(random());
        break;
      case 1:
        message[at] = static_cast<char>(message[at] ^ (1 << Below(random, 8)));
        break;
      case 2:
        message.resize(at);
        break;
      case 3:
        message.erase(at, length);
        break;
      case 4:
        message.insert(at, Fixed(length, random));
        break;
      default:
        message.insert(Below(random, message.size()), message.substr(at, length));
        break;
    }
  }
  return message;
}

}  // namespace quantd::wire
