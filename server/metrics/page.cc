#include "server/metrics/page.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace quantd::metrics {

using prometheus::ClientMetric;
using prometheus::MetricType;

namespace {

// "# HELP a_total text" without "_total": in OpenMetrics this is the name of the family.
std::string FamilyLine(absl::string_view line) {
  std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
  absl::ConsumeSuffix(&words[2], "_total");
  return absl::StrCat(words[0], " ", words[1], " ", words[2], " ", words[3]);
}

std::string ExemplarText(const Exemplars::Exemplar& exemplar) {
  if (exemplar.trace_id.empty()) return "";
  return absl::StrFormat(" # {trace_id=\"%s\"} %.9g %.3f", exemplar.trace_id, exemplar.seconds,
                         exemplar.unix_seconds);
}

}  // namespace

ClientMetric::Label Label(absl::string_view name, absl::string_view value) {
  ClientMetric::Label label;
  label.name = std::string(name);
  label.value = std::string(value);
  return label;
}

void Page::Start(MetricType type, absl::string_view name, absl::string_view help) {
  prometheus::MetricFamily& family = families_.emplace_back();
  family.name = std::string(name);
  family.help = std::string(help);
  family.type = type;
}

ClientMetric& Page::Add(Labels labels) {
  ClientMetric& metric = families_.back().metric.emplace_back();
  metric.label = std::move(labels);
  return metric;
}

void Page::AddCounter(Labels labels, double value) { Add(std::move(labels)).counter.value = value; }

void Page::AddGauge(Labels labels, double value) { Add(std::move(labels)).gauge.value = value; }

void Page::AddHistogram(Labels labels, const Histogram& histogram, const Exemplars* exemplars) {
  Add(std::move(labels)).histogram = histogram.Collect();
  exemplars_.push_back(exemplars);
}

void Page::AddOneCounter(absl::string_view name, absl::string_view help, double value) {
  Start(MetricType::Counter, name, help);
  AddCounter({}, value);
}

void Page::AddOneGauge(absl::string_view name, absl::string_view help, double value) {
  Start(MetricType::Gauge, name, help);
  AddGauge({}, value);
}

std::string Page::Text() const { return prometheus::TextSerializer().Serialize(families_); }

// Made from the text format, so that numbers and upper bounds are always written in the same way:
// bounds are labels, and a different label would be a different series.
std::string Page::OpenMetrics() const {
  const std::string text = Text();
  std::string page;
  page.reserve(text.size() + 1024);
  size_t buckets = 0;  // the number written so far, of all histograms
  std::array<Exemplars::Exemplar, Histogram::kBuckets> kept;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line.front() == '#') {
      absl::StrAppend(&page, FamilyLine(line), "\n");
      continue;
    }
    absl::StrAppend(&page, line);
    if (absl::StrContains(line.substr(0, line.find(' ')), "_bucket{")) {
      const Exemplars* const exemplars = exemplars_[buckets / Histogram::kBuckets];
      const size_t bucket = buckets++ % Histogram::kBuckets;
      if (exemplars != nullptr && bucket == 0) kept = exemplars->Collect();
      if (exemplars != nullptr) absl::StrAppend(&page, ExemplarText(kept[bucket]));
    }
    page.push_back('\n');
  }
  absl::StrAppend(&page, "# EOF\n");
  return page;
}

}  // namespace quantd::metrics
