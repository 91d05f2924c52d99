// What a client sees of an error, read with google.rpc's own messages.
#include "server/wire/status_details.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "quantd/field_error.h"
#include "quantd/utf8.h"
#include "server/wire/call_status.h"

namespace quantd::wire {
namespace status_details_test {

TEST(ToCallStatusTest, DetailsAreThoseOfGoogleRpc) {
  const std::pair<absl::Status, const char*> rows[] = {
      {FieldError("x.shape\xff", "x.shape is bad"), R"(
           code: 3 message: "x.shape is bad"
           details { [type.googleapis.com/google.rpc.BadRequest] {
             field_violations { field: "x.shape?" description: "x.shape is bad" } } }
           details { [type.googleapis.com/google.rpc.ErrorInfo] {
             reason: "INVALID_ARGUMENT" domain: "quantd" } })"},
      {WithReason(absl::UnavailableError("the queue is full"), "QUEUE_FULL"), R"(
           code: 14 message: "the queue is full"
           details { [type.googleapis.com/google.rpc.ErrorInfo] {
             reason: "QUEUE_FULL" domain: "quantd" } }
           details { [type.googleapis.com/google.rpc.RetryInfo] {
             retry_delay { nanos: 100000000 } } })"},
  };
  for (const auto& [status, text] : rows) {
    const CallStatus call = ToCallStatus(status);
    google::rpc::Status details, expected;
    ASSERT_TRUE(details.ParseFromString(call.details));
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &expected));
    EXPECT_EQ(details.DebugString(), expected.DebugString());
    EXPECT_EQ(call.code, expected.code());
    EXPECT_EQ(call.message, expected.message());
  }
}

TEST(ToCallStatusTest, CodesAreAbseils) {
  EXPECT_TRUE(ToCallStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ToCallStatus(absl::OkStatus()).details, "");
  for (int code = 1; code < kCallCodes; ++code) {
    const CallStatus call = ToCallStatus({static_cast<absl::StatusCode>(code), "text"});
    EXPECT_FALSE(call.ok());
    EXPECT_EQ(call.code, code);
  }
}

// The longest prefix of a text that fits, with a ? for each byte that belongs to no character, and
// cut between two characters.
TEST(TextOfTest, AnyTextIsCutWhereACharacterEnds) {
  const std::string pieces[] = {"a",    "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                "\xff", "\xe2\x82"};
  for (size_t from = 1000; from < 1030; ++from) {
    for (const std::string& first : pieces) {
      for (const std::string& second : pieces) {
        std::string text(from, 'x');
        for (int i = 0; i < 20; ++i) text += first + second;
        std::string expected;
        for (size_t at = 0; at < text.size();) {
          size_t size = 1;
          while (size <= 4 && ValidUtf8Prefix(text.substr(at, size)) < size) ++size;
          const std::string next = size > 4 ? "?" : text.substr(at, size);
          if (expected.size() + next.size() > kMaxErrorMessageBytes) break;
          expected += next;
          at += size > 4 ? 1 : size;
        }
        ASSERT_EQ(TextOf(absl::InternalError(text)).message, expected) << from << first << second;
      }
    }
  }
}

}  // namespace status_details_test
}  // namespace quantd::wire
