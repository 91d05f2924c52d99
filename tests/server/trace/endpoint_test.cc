// Where a collector is, in the three forms of flag and variables.
#include "server/trace/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quantd::trace {
namespace {

std::string UrlOf(const absl::StatusOr<Endpoint>& endpoint) {
  return endpoint.ok() ? Url(*endpoint) : std::string(endpoint.status().message());
}

TEST(Endpoint, OfTheFlagHasPortAndPathOfOtlp) {
  EXPECT_EQ(UrlOf(ParseEndpoint("http://[::1]:4444/x/y")), "http://[::1]:4444/x/y");
  EXPECT_EQ(ParseEndpoint("http://[::1]:4444/x/y")->host, "::1");
  EXPECT_EQ(UrlOf(ParseEndpoint("http://collector")), "http://collector:4318/v1/traces");
  EXPECT_EQ(UrlOf(ParseEndpoint("http://collector:1/")), "http://collector:1/v1/traces");
  EXPECT_EQ(UrlOf(ParseEndpoint("https://collector")), "https://collector:443/v1/traces");
  EXPECT_EQ(UrlOf(ParseEndpoint("HTTPS://collector:4318")), "https://collector:4318/v1/traces");
}

TEST(Endpoint, OfAllSignalsIsTheBaseOfAPath) {
  EXPECT_EQ(UrlOf(ParseBaseEndpoint("http://collector:4318")), "http://collector:4318/v1/traces");
  EXPECT_EQ(UrlOf(ParseBaseEndpoint("http://collector/")), "http://collector:80/v1/traces");
  EXPECT_EQ(UrlOf(ParseBaseEndpoint("https://a/otlp")), "https://a:443/otlp/v1/traces");
  EXPECT_EQ(UrlOf(ParseBaseEndpoint("https://a/otlp/")), "https://a:443/otlp/v1/traces");
}

TEST(Endpoint, OfTracesIsTakenAsItIs) {
  EXPECT_EQ(UrlOf(ParseTracesEndpoint("http://collector:4318")), "http://collector:4318/");
  EXPECT_EQ(UrlOf(ParseTracesEndpoint("https://a/v1/traces")), "https://a:443/v1/traces");
  EXPECT_EQ(UrlOf(ParseTracesEndpoint("https://a:1/x/")), "https://a:1/x/");
}

TEST(Endpoint, AnythingElseIsRefused) {
  for (const char* wrong :
       {"", "collector:4318", "http://", "https://", "http://a:0", "http://a:65536", "http://a:x",
        "http://u:p@a", "http://a/?x", "http://a/#x", "http://a b", "ftp://a",
        "http://a/\r\nX-Evil: 1", "http://a\nb"}) {
    for (const auto& endpoint :
         {ParseEndpoint(wrong), ParseBaseEndpoint(wrong), ParseTracesEndpoint(wrong)}) {
      EXPECT_TRUE(absl::IsInvalidArgument(endpoint.status())) << wrong;
      EXPECT_THAT(endpoint.status().message(),
                  ::testing::HasSubstr("http[s]://HOST[:PORT][/PATH]"));
    }
  }
}

TEST(Endpoint, SecretsAreNotRepeated) {
  for (const char* wrong : {"http://user:secret@a", "https://secret@a:4318/v1/traces",
                            "https://a/v1/traces?api-key=secret", "https://a/#secret"}) {
    EXPECT_THAT(ParseBaseEndpoint(wrong).status().message(),
                ::testing::Not(::testing::HasSubstr("secret")));
  }
  EXPECT_EQ(ParseBaseEndpoint("ftp://a").status().message(),
            "is 'ftp://a', must be http[s]://HOST[:PORT][/PATH]");
}

}  // namespace
}  // namespace quantd::trace
