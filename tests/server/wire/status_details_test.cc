#include "server/wire/status_details.h"

#include <gmock/gmock.h>
#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "quantd/utf8.h"
#include "server/wire/call_status.h"

namespace quantd::wire {
namespace {

// google.rpc, written here from its published definition, to read the details as any client does.
// In a pool of its own.
constexpr char kProto[] = R"(
syntax = "proto3";
package google.rpc;
message Any { string type_url = 1; bytes value = 2; }
message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
message BadRequest {
  message FieldViolation { string field = 1; string description = 2; }
  repeated FieldViolation field_violations = 1;
}
message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
message Duration { int64 seconds = 1; int32 nanos = 2; }
message RetryInfo { Duration retry_delay = 1; }
)";

class GoogleRpc {
 public:
  GoogleRpc() {
    google::protobuf::io::ArrayInputStream input(kProto, sizeof(kProto) - 1);
    google::protobuf::io::Tokenizer tokenizer(&input, nullptr);
    google::protobuf::FileDescriptorProto file;
    file.set_name("rpc.proto");
    google::protobuf::compiler::Parser().Parse(&tokenizer, &file);
    pool_.BuildFile(file);
  }

  // The message as short text, with its details behind it: "code: 3 ... | BadRequest: ... | ...".
  std::string Text(const std::string& details) {
    std::unique_ptr<google::protobuf::Message> status = Parse("Status", details);
    const auto* reflection = status->GetReflection();
    const auto* field = status->GetDescriptor()->FindFieldByName("details");
    std::string text;
    for (int i = 0; i < reflection->FieldSize(*status, field); ++i) {
      const google::protobuf::Message& any = reflection->GetRepeatedMessage(*status, field, i);
      const auto* type = any.GetDescriptor();
      const std::string url =
          any.GetReflection()->GetString(any, type->FindFieldByName("type_url"));
      const std::string prefix = "type.googleapis.com/google.rpc.";
      EXPECT_EQ(url.substr(0, prefix.size()), prefix);
      const std::string name = url.substr(prefix.size());
      absl::StrAppend(
          &text, " | ", name, ": ",
          Parse(name, any.GetReflection()->GetString(any, type->FindFieldByName("value")))
              ->ShortDebugString());
    }
    reflection->ClearField(status.get(), field);
    return status->ShortDebugString() + text;
  }

 private:
  std::unique_ptr<google::protobuf::Message> Parse(const std::string& name,
                                                   const std::string& bytes) {
    const auto* type = pool_.FindMessageTypeByName("google.rpc." + name);
    std::unique_ptr<google::protobuf::Message> message(factory_.GetPrototype(type)->New());
    EXPECT_TRUE(message->ParseFromString(bytes)) << name;
    return message;
  }

  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_{&pool_};
};

TEST(StatusDetailsTest, OkHasNone) {
  const wire::CallStatus status = ToCallStatus(absl::OkStatus());
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code, 0);
  EXPECT_EQ(status.message, "");
  EXPECT_EQ(status.details, "");
}

TEST(StatusDetailsTest, AFieldError) {
  const wire::CallStatus status = ToCallStatus(FieldError("x.shape", "x.shape is bad"));
  EXPECT_EQ(status.code, 3);
  EXPECT_EQ(status.message, "x.shape is bad");
  EXPECT_EQ(GoogleRpc().Text(status.details),
            "code: 3 message: \"x.shape is bad\""
            " | BadRequest: field_violations { field: \"x.shape\" description: \"x.shape is bad\" }"
            " | ErrorInfo: reason: \"INVALID_ARGUMENT\" domain: \"quantd\"");
}

TEST(StatusDetailsTest, UnavailableSaysWhenToRetry) {
  const wire::CallStatus status =
      ToCallStatus(wire::WithReason(absl::UnavailableError("the queue is full"), "QUEUE_FULL"));
  EXPECT_EQ(status.code, 14);
  EXPECT_EQ(GoogleRpc().Text(status.details),
            "code: 14 message: \"the queue is full\""
            " | ErrorInfo: reason: \"QUEUE_FULL\" domain: \"quantd\""
            " | RetryInfo: retry_delay { nanos: 100000000 }");
}

TEST(StatusDetailsTest, EveryCodeIsTheSameNumber) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "text");
    const wire::CallStatus call = ToCallStatus(status);
    EXPECT_FALSE(call.ok());
    EXPECT_EQ(call.code, code);
    EXPECT_LT(call.code, wire::kCallCodes);
    EXPECT_THAT(GoogleRpc().Text(call.details),
                testing::HasSubstr(absl::StrCat("code: ", code, " message: \"text\"")));
  }
}

TEST(StatusDetailsTest, TextIsShortAndValid) {
  const std::string euro = "\xe2\x82\xac";
  std::string text = "a\xff";
  for (int i = 0; i < 10'000; ++i) text += euro;
  const wire::CallStatus status = ToCallStatus(absl::InvalidArgumentError(text));
  EXPECT_EQ(ValidUtf8Prefix(status.message), status.message.size());
  EXPECT_LE(status.message.size(), kMaxErrorMessageBytes);
  EXPECT_GT(status.message.size(), kMaxErrorMessageBytes - 3);
  EXPECT_EQ(status.message.substr(0, 5), "a?" + euro);
  EXPECT_LT(status.details.size(), 4096u);
  EXPECT_EQ(TextOf(absl::InvalidArgumentError(std::string(9, '\x80'))).message, "?????????");
}

// The longest prefix of a text that fits, with a ? for each byte that belongs to no character, and
// cut between two characters.
TEST(StatusDetailsTest, AnyTextIsCutWhereACharacterEnds) {
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

}  // namespace
}  // namespace quantd::wire
