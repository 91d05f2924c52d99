// Decides which calls are traced, and exports their spans: a bounded queue and a thread of its own,
// so that a collector that is slow, dead or broken costs spans and nothing else.
//
//   auto tracer = Tracer(settings);
//   if (const auto context = tracer.Begin(parent)) { ...; tracer.Add(std::move(span)); }
//   tracer.Close();
#ifndef QUANTD_SERVER_TRACE_TRACER_H_
#define QUANTD_SERVER_TRACE_TRACER_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/trace/context.h"
#include "server/trace/poster.h"
#include "server/trace/span.h"

namespace quantd::trace {

// Decides which calls are traced.
struct Sampler {
  bool parents_decide = true;  // calls with a traceparent follow it
  double ratio = 0;            // of other calls, by trace id, so that all servers decide alike
};

struct Settings {
  Destination destination;
  Sampler sampler;
  Resource resource;
  std::chrono::milliseconds interval{1000};  // between batches
  std::chrono::milliseconds post_time{5000};
};

// Counts of spans that were not exported.
struct Dropped {
  uint64_t full = 0;    // the queue was full
  uint64_t failed = 0;  // the collector did not accept them
};

// Thread-safe, except for Close.
class Tracer {
 public:
  static constexpr size_t kMostWaiting = 4096;
  static constexpr size_t kBatch = 512;
  static constexpr int kAttempts = 3;

  explicit Tracer(Settings settings);
  ~Tracer();

  // The trace and span ids of a call, if it is to be traced.
  std::optional<Context> Begin(const std::optional<Context>& parent) const;
  // Queues a span if there is room. Never waits for the collector.
  void Add(Span span);
  // Exports waiting spans, within `most`, and ends the thread. Call once.
  void Close(std::chrono::milliseconds most = std::chrono::milliseconds(2000));

  uint64_t exported() const;
  Dropped dropped() const;

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);
  static void Export(State& state, const std::vector<Span>& batch);

  const Sampler sampler_;
  std::shared_ptr<State> state_;  // shared with the thread, which may be stuck in a name lookup
};

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_TRACER_H_
