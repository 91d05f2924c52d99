// The bytes of OTLP, as protobuf reads them. tests/e2e/test_traces.py has them read by a collector.
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/trace/span.h"

namespace quantd::trace {
namespace {

using google::protobuf::UnknownFieldSet;

std::shared_ptr<UnknownFieldSet> Read(const std::string& bytes) {
  auto fields = std::make_shared<UnknownFieldSet>();
  EXPECT_TRUE(fields->ParseFromString(bytes));
  return fields;
}

std::vector<std::string> Of(const std::shared_ptr<UnknownFieldSet>& fields, int number) {
  std::vector<std::string> found;
  for (int i = 0; i < fields->field_count(); ++i) {
    if (fields->field(i).number() == number) found.push_back(fields->field(i).length_delimited());
  }
  return found;
}

uint64_t Number(const std::shared_ptr<UnknownFieldSet>& fields, int number) {
  for (int i = 0; i < fields->field_count(); ++i) {
    const auto& field = fields->field(i);
    if (field.number() != number) continue;
    return field.type() == google::protobuf::UnknownField::TYPE_VARINT ? field.varint()
                                                                       : field.fixed64();
  }
  return 0;
}

TEST(Otlp, EveryFieldIsWhereItBelongs) {
  Span span;
  span.trace_id.fill(0xab);
  span.span_id.fill(0xcd);
  span.parent_id.fill(0xef);
  span.name = "service/Method";
  span.begin = 1'700'000'000'123'456'789;
  span.end = span.begin + 5;
  span.failed = true;
  span.attributes = {{"text", "value"}, {"number", int64_t{-7}}};
  span.events = {{"decoded", span.begin + 1}};
  const auto request = Read(EncodeOtlp(
      {"1.2.3", {{"service.name", "quantd"}, {"host.name", "host"}, {"process.pid", int64_t{99}}}},
      {span, Span()}));
  const auto resource_spans = Read(Of(request, 1).at(0));
  EXPECT_EQ(Of(Read(Of(resource_spans, 1).at(0)), 1).size(), 3U);
  const auto scope_spans = Read(Of(resource_spans, 2).at(0));
  EXPECT_EQ(Of(Read(Of(scope_spans, 1).at(0)), 2).at(0), "1.2.3");
  ASSERT_EQ(Of(scope_spans, 2).size(), 2U);
  const auto read = Read(Of(scope_spans, 2)[0]);
  EXPECT_EQ(Of(read, 1).at(0), std::string(16, '\xab'));
  EXPECT_EQ(Of(read, 2).at(0), std::string(8, '\xcd'));
  EXPECT_EQ(Of(read, 4).at(0), std::string(8, '\xef'));
  EXPECT_EQ(Of(read, 5).at(0), "service/Method");
  EXPECT_EQ(Number(read, 6), 2U);
  EXPECT_EQ(Number(read, 7), static_cast<uint64_t>(span.begin));
  EXPECT_EQ(Number(read, 8), static_cast<uint64_t>(span.end));
  ASSERT_EQ(Of(read, 9).size(), 2U);
  const auto number = Read(Of(read, 9)[1]);
  EXPECT_EQ(Of(number, 1).at(0), "number");
  EXPECT_EQ(static_cast<int64_t>(Number(Read(Of(number, 2).at(0)), 3)), -7);
  const auto event = Read(Of(read, 11).at(0));
  EXPECT_EQ(Number(event, 1), static_cast<uint64_t>(span.begin + 1));
  EXPECT_EQ(Of(event, 2).at(0), "decoded");
  EXPECT_EQ(Number(Read(Of(read, 15).at(0)), 3), 2U);
  // A root without an error.
  const auto plain = Read(Of(scope_spans, 2)[1]);
  EXPECT_TRUE(Of(plain, 4).empty());
  EXPECT_TRUE(Of(plain, 15).empty());
}

}  // namespace
}  // namespace quantd::trace
