#include "server/metrics/page.h"

#include <prometheus/text_serializer.h>

#include <utility>

namespace quantd::metrics {

using prometheus::ClientMetric;
using prometheus::MetricType;

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

void Page::AddHistogram(Labels labels, const Histogram& histogram) {
  Add(std::move(labels)).histogram = histogram.Collect();
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

}  // namespace quantd::metrics
