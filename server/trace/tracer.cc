#include "server/trace/tracer.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/random/random.h"
#include "server/log/log.h"

namespace quantd::trace {
namespace {

using Clock = std::chrono::steady_clock;

template <size_t n>
std::array<uint8_t, n> RandomId() {
  thread_local absl::BitGen random;
  std::array<uint8_t, n> id{};
  static_assert(n % sizeof(uint64_t) == 0);
  while (id == std::array<uint8_t, n>{}) {  // zero is not valid
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
      const auto bits = absl::Uniform<uint64_t>(random);
      std::memcpy(&id[i], &bits, sizeof(bits));
    }
  }
  return id;
}

// The same decision as in OpenTelemetry's SDKs: the last eight bytes of an id are a random number.
// Uses as many of its bits as a double holds exactly.
bool IsIn(const TraceId& id, double ratio) {
  uint64_t number = 0;
  for (size_t i = 8; i < id.size(); ++i) number = number << 8 | id[i];
  return static_cast<double>(number >> 11) < ratio * 0x1p53;
}

}  // namespace

struct Tracer::State {
  explicit State(Settings given) : settings(std::move(given)), poster(settings.destination) {}

  const Settings settings;
  Poster poster;
  std::atomic<uint64_t> exported{0};
  std::atomic<uint64_t> full{0};
  std::atomic<uint64_t> failed{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Span> waiting;
  bool closing = false;
  Clock::time_point close_until;  // set while closing
  bool ended = false;
};

Tracer::Tracer(Settings settings)
    : sampler_(settings.sampler), state_(std::make_shared<State>(std::move(settings))) {
  std::thread([state = state_] { Run(state); }).detach();
}

Tracer::~Tracer() { Close(std::chrono::milliseconds(0)); }

std::optional<Context> Tracer::Begin(const std::optional<Context>& parent) const {
  const bool decided = parent.has_value() && sampler_.parents_decide;
  if (decided ? !parent->sampled : sampler_.ratio <= 0) return std::nullopt;
  Context context;
  context.trace_id = parent.has_value() ? parent->trace_id : RandomId<16>();
  if (!decided && !IsIn(context.trace_id, sampler_.ratio)) return std::nullopt;
  context.span_id = RandomId<8>();
  context.sampled = true;
  return context;
}

void Tracer::Add(Span span) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.waiting.size() >= kMostWaiting || state.closing) {
    state.full.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  state.waiting.push_back(std::move(span));
  // Otherwise the thread looks a second after the last time.
  if (state.waiting.size() == kBatch) state.changed.notify_one();
}

uint64_t Tracer::exported() const { return state_->exported.load(std::memory_order_relaxed); }

Dropped Tracer::dropped() const {
  return {state_->full.load(std::memory_order_relaxed),
          state_->failed.load(std::memory_order_relaxed)};
}

void Tracer::Close(std::chrono::milliseconds most) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (std::exchange(state.closing, true)) return;
  state.close_until = Clock::now() + most;
  state.changed.notify_one();
  const auto ended = [&state] { return state.ended; };
  if (state.changed.wait_until(lock, state.close_until, ended)) return;
  // It may be in a post, which ends now, or in a name lookup, where it is left behind.
  state.poster.Interrupt();
  state.changed.wait_for(lock, std::chrono::milliseconds(500), ended);
}

void Tracer::Run(const std::shared_ptr<State>& shared) {
  State& state = *shared;
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.changed.wait_for(lock, state.settings.interval,
                           [&state] { return state.closing || state.waiting.size() >= kBatch; });
    while (!state.waiting.empty()) {
      const auto count = static_cast<ptrdiff_t>(std::min(state.waiting.size(), kBatch));
      std::vector<Span> batch(std::make_move_iterator(state.waiting.begin()),
                              std::make_move_iterator(state.waiting.begin() + count));
      state.waiting.erase(state.waiting.begin(), state.waiting.begin() + count);
      lock.unlock();
      Export(state, batch);
      lock.lock();
    }
    if (state.closing) break;
  }
  state.ended = true;
  state.changed.notify_all();
}

// Tries a few times, as long as that makes sense. Meanwhile other spans wait in the queue, and are
// dropped when it is full.
void Tracer::Export(State& state, const std::vector<Span>& batch) {
  static log::Repeated failed(log::Level::kWarn, "spans not exported", 2);
  const std::string body = EncodeOtlp(state.settings.resource, batch);
  std::chrono::milliseconds pause = state.settings.interval;
  absl::Status status = absl::UnavailableError("the server ends");
  for (int attempt = 0; attempt < kAttempts; ++attempt, pause *= 2) {
    std::unique_lock lock(state.mutex);
    // Waits between attempts, unless the tracer closes.
    if (attempt > 0) state.changed.wait_for(lock, pause, [&state] { return state.closing; });
    std::chrono::milliseconds time = state.settings.post_time;
    if (state.closing) {
      time = std::min(time, std::chrono::duration_cast<std::chrono::milliseconds>(
                                state.close_until - Clock::now()));
    }
    lock.unlock();
    if (time.count() <= 0) break;
    status = state.poster.Post(body, time);
    if (status.ok()) {
      state.exported.fetch_add(batch.size(), std::memory_order_relaxed);
      return;
    }
    if (!absl::IsUnavailable(status)) break;
  }
  state.failed.fetch_add(batch.size(), std::memory_order_relaxed);
  failed.Write([&] { return log::Fields{{"spans", batch.size()}, {"error", status.message()}}; });
}

}  // namespace quantd::trace
