#include "server/trace/environment.h"

#include <event2/http.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/log/log.h"

namespace quantd::trace {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Variable {
  std::string name;
  std::string value;
};

// Percent-decoding, as in W3C Baggage.
std::string Unescape(const std::string& text) {
  size_t size = 0;
  const std::unique_ptr<char, access::Free<std::free>> raw(
      evhttp_uridecode(text.c_str(), 0, &size));
  return raw == nullptr ? text : std::string(raw.get(), size);
}

// key=value,key=value. nullopt if a pair has no key or no =.
std::optional<Pairs> ReadPairs(absl::string_view text) {
  Pairs pairs;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::string_view pair = absl::StripAsciiWhitespace(part);
    if (pair.empty()) continue;
    const size_t at = pair.find('=');
    if (at == 0 || at == absl::string_view::npos) return std::nullopt;
    const auto clean = [](absl::string_view one) {
      return Unescape(std::string(absl::StripAsciiWhitespace(one)));
    };
    pairs.emplace_back(clean(pair.substr(0, at)), clean(pair.substr(at + 1)));
  }
  return pairs;
}

// Headers that say how a message is framed and encoded, which only this program may set.
bool IsOwnHeader(absl::string_view name) {
  constexpr std::array<absl::string_view, 6> kOwn = {
      "connection", "content-encoding", "content-length", "content-type",
      "te",         "transfer-encoding"};
  return std::any_of(kOwn.begin(), kOwn.end(),
                     [&](absl::string_view own) { return absl::EqualsIgnoreCase(name, own); });
}

// Valid in RFC 9110: the name is a token, and the value is text in one line.
bool IsHeader(absl::string_view name, absl::string_view value) {
  const auto in_token = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains("!#$%&'*+-.^_`|~", c);
  };
  const auto printable = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), in_token) &&
         std::all_of(value.begin(), value.end(), printable);
}

class Reader {
 public:
  explicit Reader(const std::function<const char*(const char*)>& get) : get_(get) {}

  // An empty variable counts as unset, as the specification says.
  std::optional<Variable> Of(const std::string& name) const {
    const char* const value = get_(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return Variable{name, value};
  }
  // The variable for traces, or else the one for all signals.
  std::optional<Variable> OfExporter(absl::string_view end) const {
    std::optional<Variable> found = Of(absl::StrCat("OTEL_EXPORTER_OTLP_TRACES_", end));
    return found.has_value() ? found : Of(absl::StrCat("OTEL_EXPORTER_OTLP_", end));
  }
  TlsFile File(absl::string_view end) const {
    std::optional<Variable> found = OfExporter(end);
    return found.has_value() ? TlsFile{found->value, found->name} : TlsFile{};
  }
  void Ignore(const Variable& variable, std::string reason) {
    ignored.push_back({variable.name, std::move(reason)});
  }

  std::vector<Ignored> ignored;

 private:
  const std::function<const char*(const char*)>& get_;
};

std::string Must(const Variable& variable, absl::string_view what) {
  return absl::StrCat("is '", variable.value, "', must be ", what);
}

// The endpoint that the variables set, if any.
std::optional<Endpoint> ReadEndpoint(Reader& reader) {
  const auto disabled = reader.Of("OTEL_SDK_DISABLED");
  if (disabled.has_value() && absl::EqualsIgnoreCase(disabled->value, "true")) return std::nullopt;
  if (const auto exporter = reader.Of("OTEL_TRACES_EXPORTER");
      exporter.has_value() && exporter->value != "otlp") {
    if (exporter->value != "none") reader.Ignore(*exporter, Must(*exporter, "otlp or none"));
    return std::nullopt;
  }
  const auto base = reader.Of("OTEL_EXPORTER_OTLP_ENDPOINT");
  const auto traces = reader.Of("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  if (!base.has_value() && !traces.has_value()) return std::nullopt;
  if (const auto protocol = reader.OfExporter("PROTOCOL");
      protocol.has_value() && protocol->value != "http/protobuf") {
    reader.Ignore(*protocol, Must(*protocol, "http/protobuf: nothing is traced"));
    return std::nullopt;
  }
  const Variable& given = traces.has_value() ? *traces : *base;
  absl::StatusOr<Endpoint> endpoint =
      traces.has_value() ? ParseTracesEndpoint(given.value) : ParseBaseEndpoint(given.value);
  if (endpoint.ok()) return *std::move(endpoint);
  reader.Ignore(given, std::string(endpoint.status().message()));
  return std::nullopt;
}

Sampler ReadSampler(Reader& reader) {
  const auto name = reader.Of("OTEL_TRACES_SAMPLER");
  if (!name.has_value()) return {};
  absl::string_view kind = name->value;
  Sampler sampler;
  sampler.parents_decide = absl::ConsumePrefix(&kind, "parentbased_");
  if (kind == "always_on") {
    sampler.ratio = 1;
  } else if (kind == "traceidratio") {
    sampler.ratio = 1;
    const auto given = reader.Of("OTEL_TRACES_SAMPLER_ARG");
    double ratio = 0;
    if (given.has_value() && absl::SimpleAtod(given->value, &ratio) && ratio >= 0 && ratio <= 1) {
      sampler.ratio = ratio;
    } else if (given.has_value()) {
      reader.Ignore(*given, Must(*given, "0 to 1"));
    }
  } else if (kind != "always_off") {
    reader.Ignore(*name, Must(*name,
                              "always_on, always_off or traceidratio, or one of them after "
                              "parentbased_"));
    return {};
  }
  return sampler;
}

void ReadHeaders(Reader& reader, Pairs& headers) {
  const auto variable = reader.OfExporter("HEADERS");
  if (!variable.has_value()) return;
  std::optional<Pairs> pairs = ReadPairs(variable->value);
  if (!pairs.has_value()) {
    reader.Ignore(*variable, "must be NAME=VALUE,NAME=VALUE");
    return;
  }
  for (const auto& [name, value] : *pairs) {
    if (IsOwnHeader(name)) {
      reader.Ignore(*variable, absl::StrCat("has the header ", name, ", which quantd sets itself"));
    } else if (IsHeader(name, value)) {
      headers.emplace_back(name, value);
    } else {
      reader.Ignore(*variable, "has a header that HTTP does not allow");
    }
  }
}

void Set(std::vector<Attribute>& attributes, const std::string& key, const std::string& value) {
  for (auto& [known, old] : attributes) {
    if (known != key) continue;
    old = value;
    return;
  }
  attributes.emplace_back(key, value);
}

void ReadResource(Reader& reader, Resource& resource) {
  if (const auto variable = reader.Of("OTEL_RESOURCE_ATTRIBUTES"); variable.has_value()) {
    const std::optional<Pairs> pairs = ReadPairs(variable->value);
    if (!pairs.has_value()) reader.Ignore(*variable, Must(*variable, "KEY=VALUE,KEY=VALUE"));
    for (const auto& [key, value] : pairs.value_or(Pairs())) Set(resource.attributes, key, value);
  }
  if (const auto name = reader.Of("OTEL_SERVICE_NAME"); name.has_value()) {
    Set(resource.attributes, "service.name", name->value);
  }
}

void ReadRest(Reader& reader, Settings& settings) {
  ReadHeaders(reader, settings.destination.headers);
  if (const auto given = reader.OfExporter("COMPRESSION"); given.has_value()) {
    settings.destination.gzip = given->value == "gzip";
    if (given->value != "gzip" && given->value != "none") {
      reader.Ignore(*given, Must(*given, "gzip or none"));
    }
  }
  if (const auto given = reader.OfExporter("TIMEOUT"); given.has_value()) {
    constexpr int kMost = 3'600'000;
    int milliseconds = 0;
    if (absl::SimpleAtoi(given->value, &milliseconds) && milliseconds > 0 &&
        milliseconds <= kMost) {
      settings.post_time = std::chrono::milliseconds(milliseconds);
    } else {
      reader.Ignore(*given, Must(*given, absl::StrCat("1 to ", kMost, ", in milliseconds")));
    }
  }
  settings.destination.tls = {reader.File("CERTIFICATE"), reader.File("CLIENT_CERTIFICATE"),
                              reader.File("CLIENT_KEY")};
}

}  // namespace

Asked Ask(const Flags& flags, Resource resource,
          const std::function<const char*(const char*)>& get) {
  Reader reader(get);
  Asked asked;
  std::optional<Endpoint> endpoint = flags.endpoint;
  if (!endpoint.has_value()) endpoint = ReadEndpoint(reader);
  if (endpoint.has_value()) {
    Settings& settings = asked.settings.emplace();
    settings.destination.endpoint = *std::move(endpoint);
    settings.sampler = ReadSampler(reader);
    if (flags.sample_ratio > 0) settings.sampler = {.ratio = flags.sample_ratio};
    settings.resource = std::move(resource);
    ReadResource(reader, settings.resource);
    ReadRest(reader, settings);
  }
  asked.ignored = std::move(reader.ignored);
  return asked;
}

std::unique_ptr<Tracer> MakeTracer(const Flags& flags, Resource resource) {
  Asked asked = Ask(flags, std::move(resource), [](const char* name) { return std::getenv(name); });
  for (const Ignored& one : asked.ignored) {
    log::Warn("variable ignored", {{"variable", one.variable}, {"reason", one.reason}});
  }
  if (!asked.settings.has_value()) return nullptr;
  const Settings& settings = *asked.settings;
  const Destination& destination = settings.destination;
  log::Info("tracing", {{"endpoint", Url(destination.endpoint)},
                        {"parents_decide", settings.sampler.parents_decide},
                        {"sample_ratio", settings.sampler.ratio},
                        {"headers", destination.headers.size()},
                        {"gzip", destination.gzip},
                        {"attributes", absl::StrJoin(settings.resource.attributes, ",",
                                                     [](std::string* out, const Attribute& one) {
                                                       absl::StrAppend(out, one.first);
                                                     })}});
  if (destination.endpoint.tls) {
    const absl::Status status = MakeTlsContext(destination.tls).status();
    if (!status.ok()) log::Warn("spans cannot be exported", {{"error", status.message()}});
  }
  return std::make_unique<Tracer>(*std::move(asked.settings));
}

}  // namespace quantd::trace
