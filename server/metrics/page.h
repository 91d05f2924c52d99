// The metrics page: families of series, in Prometheus' text format.
#ifndef QUANTD_SERVER_METRICS_PAGE_H_
#define QUANTD_SERVER_METRICS_PAGE_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/metrics/histogram.h"

namespace quantd::metrics {

using Labels = std::vector<prometheus::ClientMetric::Label>;
prometheus::ClientMetric::Label Label(absl::string_view name, absl::string_view value);

// Families are shown in the order in which they are added.
class Page {
 public:
  // Starts a family: the following series belong to it. A counter's name ends in _total.
  void Start(prometheus::MetricType type, absl::string_view name, absl::string_view help);
  void AddCounter(Labels labels, double value);
  void AddGauge(Labels labels, double value);
  void AddHistogram(Labels labels, const Histogram& histogram);
  // Adds a family with one series without labels.
  void AddOneCounter(absl::string_view name, absl::string_view help, double value);
  void AddOneGauge(absl::string_view name, absl::string_view help, double value);

  // Version 0.0.4 of the format.
  std::string Text() const;

 private:
  prometheus::ClientMetric& Add(Labels labels);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace quantd::metrics

#endif  // QUANTD_SERVER_METRICS_PAGE_H_
