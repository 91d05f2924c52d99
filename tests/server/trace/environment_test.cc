// OpenTelemetry's variables, alone, against each other and against quantd's flags.
#include "server/trace/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace quantd::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Variables = std::map<std::string, std::string>;

constexpr char kEndpoint[] = "OTEL_EXPORTER_OTLP_ENDPOINT";

Asked Ask(const Variables& variables, const Flags& flags = {}) {
  return trace::Ask(flags, {"1.0", {{"service.name", "quantd"}, {"process.pid", int64_t{7}}}},
                    [&variables](const char* name) {
                      const auto found = variables.find(name);
                      return found == variables.end() ? nullptr : found->second.c_str();
                    });
}

// The settings with an endpoint.
Asked AskWith(Variables variables) {
  variables[kEndpoint] = "http://collector:4318";
  Asked asked = Ask(variables);
  EXPECT_TRUE(asked.settings.has_value());
  return asked;
}

std::string UrlOf(const Asked& asked) {
  return asked.settings.has_value() ? Url(asked.settings->destination.endpoint) : "";
}

std::string Reasons(const Asked& asked) {
  std::string text;
  for (const Ignored& one : asked.ignored) text += one.variable + " " + one.reason + "\n";
  return text;
}

Flags WithEndpoint() {
  Flags flags;
  flags.endpoint = *ParseEndpoint("http://flag");
  return flags;
}

TEST(Environment, NothingIsTracedUnlessAsked) {
  EXPECT_FALSE(Ask({}).settings.has_value());
  EXPECT_FALSE(Ask({{kEndpoint, ""}}).settings.has_value());
  EXPECT_FALSE(Ask({{"OTEL_TRACES_SAMPLER", "always_on"}}).settings.has_value());
}

TEST(Environment, TheFlagWinsThenTracesThenAllSignals) {
  Variables variables = {{kEndpoint, "http://all:1"}};
  EXPECT_EQ(UrlOf(Ask(variables)), "http://all:1/v1/traces");
  variables["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = "https://traces/x";
  EXPECT_EQ(UrlOf(Ask(variables)), "https://traces:443/x");
  EXPECT_EQ(UrlOf(Ask(variables, WithEndpoint())), "http://flag:4318/v1/traces");
}

TEST(Environment, CanBeTurnedOff) {
  const Variables base = {{kEndpoint, "http://all:1"}};
  for (const auto& [name, value] : Variables{{"OTEL_SDK_DISABLED", "TRUE"},
                                             {"OTEL_TRACES_EXPORTER", "none"},
                                             {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}) {
    Variables variables = base;
    variables[name] = value;
    EXPECT_FALSE(Ask(variables).settings.has_value()) << name;
    EXPECT_TRUE(Ask(variables, WithEndpoint()).settings.has_value()) << name;
  }
  Variables otlp = base;
  otlp["OTEL_TRACES_EXPORTER"] = "otlp";
  otlp["OTEL_SDK_DISABLED"] = "false";
  EXPECT_TRUE(Ask(otlp).settings.has_value());
}

TEST(Environment, AnotherProtocolIsSaid) {
  Variables variables = {{kEndpoint, "http://all:4317"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}};
  EXPECT_EQ(Reasons(Ask(variables)),
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', must be http/protobuf: nothing is traced\n");
  variables["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf";
  EXPECT_THAT(Ask(variables).ignored, IsEmpty());
  EXPECT_EQ(UrlOf(Ask(variables)), "http://all:4317/v1/traces");
}

TEST(Environment, SamplersAreOpenTelemetrys) {
  struct Row {
    const char* name;
    const char* argument;
    bool parents_decide;
    double ratio;
  };
  for (const Row& row :
       {Row{"", "", true, 0}, Row{"always_on", "", false, 1}, Row{"always_off", "", false, 0},
        Row{"traceidratio", "0.25", false, 0.25}, Row{"traceidratio", "", false, 1},
        Row{"parentbased_always_on", "", true, 1}, Row{"parentbased_always_off", "1", true, 0},
        Row{"parentbased_traceidratio", "0.5", true, 0.5},
        Row{"parentbased_traceidratio", "0", true, 0}}) {
    const Asked asked =
        AskWith({{"OTEL_TRACES_SAMPLER", row.name}, {"OTEL_TRACES_SAMPLER_ARG", row.argument}});
    EXPECT_EQ(asked.settings->sampler.parents_decide, row.parents_decide) << row.name;
    EXPECT_EQ(asked.settings->sampler.ratio, row.ratio) << row.name;
    EXPECT_EQ(Reasons(asked), "") << row.name;
  }
  for (const char* wrong :
       {"sometimes", "parentbased_", "parentbased_jaeger_remote", "ALWAYS_ON"}) {
    const Asked asked = AskWith({{"OTEL_TRACES_SAMPLER", wrong}});
    EXPECT_EQ(asked.settings->sampler.ratio, 0) << wrong;
    EXPECT_TRUE(asked.settings->sampler.parents_decide) << wrong;
    EXPECT_THAT(Reasons(asked), HasSubstr("OTEL_TRACES_SAMPLER is '")) << wrong;
  }
  for (const char* wrong : {"x", "1.5", "-0.1", "nan"}) {
    const Asked asked =
        AskWith({{"OTEL_TRACES_SAMPLER", "traceidratio"}, {"OTEL_TRACES_SAMPLER_ARG", wrong}});
    EXPECT_EQ(asked.settings->sampler.ratio, 1) << wrong;
    EXPECT_THAT(Reasons(asked), HasSubstr("OTEL_TRACES_SAMPLER_ARG is '")) << wrong;
  }
}

TEST(Environment, TheFlagsRatioWins) {
  Flags flags = WithEndpoint();
  flags.sample_ratio = 0.125;
  const Asked asked = Ask({{"OTEL_TRACES_SAMPLER", "always_off"}}, flags);
  EXPECT_TRUE(asked.settings->sampler.parents_decide);
  EXPECT_EQ(asked.settings->sampler.ratio, 0.125);
}

TEST(Environment, HeadersAreDecodedAndChecked) {
  const char* const all = "OTEL_EXPORTER_OTLP_HEADERS";
  EXPECT_THAT(AskWith({{all, "api-key=a%20b%3D,  x = y=z ,"}}).settings->destination.headers,
              ElementsAre(Pair("api-key", "a b="), Pair("x", "y=z")));
  EXPECT_THAT(AskWith({{all, "a=1"}, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=2"}})
                  .settings->destination.headers,
              ElementsAre(Pair("b", "2")));
  for (const char* wrong :
       {"secret", "=secret", "a:b=secret", "a=secret%0d%0ab:c", "a b=secret", "a=secret%00",
        "Content-Length=secret", "transfer%2Dencoding=secret", "Content-Type=secret"}) {
    const Asked asked = AskWith({{all, wrong}});
    EXPECT_THAT(asked.settings->destination.headers, IsEmpty()) << wrong;
    EXPECT_THAT(Reasons(asked), HasSubstr(all)) << wrong;
    EXPECT_THAT(Reasons(asked), ::testing::Not(HasSubstr("secret"))) << wrong;
  }
}

TEST(Environment, TheResourceIsWhatTheVariablesSay) {
  const auto attributes =
      AskWith({{"OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=p%2Cq,service.name=other,process.pid=8"}})
          .settings->resource.attributes;
  EXPECT_THAT(attributes,
              ElementsAre(Pair("service.name", std::variant<std::string, int64_t>("other")),
                          Pair("process.pid", std::variant<std::string, int64_t>("8")),
                          Pair("k8s.pod.name", std::variant<std::string, int64_t>("p,q"))));
  const Asked named =
      AskWith({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=other"}, {"OTEL_SERVICE_NAME", "mine"}});
  EXPECT_EQ(std::get<std::string>(named.settings->resource.attributes[0].second), "mine");
  const Asked wrong = AskWith({{"OTEL_RESOURCE_ATTRIBUTES", "a=b,nothing"}});
  EXPECT_EQ(wrong.settings->resource.attributes.size(), 2U);
  EXPECT_THAT(Reasons(wrong), HasSubstr("OTEL_RESOURCE_ATTRIBUTES is 'a=b,nothing'"));
}

TEST(Environment, TheRestOfTheExporter) {
  const Asked asked = AskWith({{"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
                               {"OTEL_EXPORTER_OTLP_TIMEOUT", "1500"},
                               {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca"},
                               {"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "/own-ca"},
                               {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/cert"},
                               {"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key"}});
  EXPECT_TRUE(asked.settings->destination.gzip);
  EXPECT_EQ(asked.settings->post_time, std::chrono::milliseconds(1500));
  EXPECT_EQ(asked.settings->destination.tls.ca.path, "/own-ca");
  EXPECT_EQ(asked.settings->destination.tls.ca.variable, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE");
  EXPECT_EQ(asked.settings->destination.tls.certificate.path, "/cert");
  EXPECT_EQ(asked.settings->destination.tls.key.path, "/key");
  for (const auto& [name, value] : Variables{{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"},
                                             {"OTEL_EXPORTER_OTLP_TIMEOUT", "0"},
                                             {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "10s"}}) {
    const Asked wrong = AskWith({{name, value}});
    EXPECT_THAT(Reasons(wrong), HasSubstr(name + " is '" + value + "', must be ")) << name;
    EXPECT_FALSE(wrong.settings->destination.gzip);
    EXPECT_EQ(wrong.settings->post_time, std::chrono::milliseconds(5000));
  }
  const Asked bad_url = Ask({{kEndpoint, "collector:4317"}});
  EXPECT_FALSE(bad_url.settings.has_value());
  EXPECT_THAT(Reasons(bad_url), HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT is 'collector:4317'"));
}

}  // namespace
}  // namespace quantd::trace
