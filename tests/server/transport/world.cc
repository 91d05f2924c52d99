#include "world.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "server/transport/connection.h"

namespace quantd::transport {
namespace {

constexpr std::array<absl::string_view, 7> kMethods = {"Collect", "Late", "Echo", "Send",
                                                       "Small",   "Wait", "Made"};
constexpr std::chrono::seconds kPatience{20};

wire::CallStatus ToStatus(const absl::Status& status) {
  return {static_cast<int>(status.code()), std::string(status.message()), "", {}};
}

memory::Piece ToPiece(absl::string_view bytes, memory::Pool& pool, size_t capacity = 0) {
  memory::Piece piece;
  piece.buffer = pool.Allocate(std::max(capacity, kPrefixBytes + bytes.size()));
  piece.begin = piece.buffer.data() + kPrefixBytes;
  piece.size = bytes.size();
  std::copy(bytes.begin(), bytes.end(), piece.begin);
  return piece;
}

// Makes a pattern, `part` bytes at a time; if `part` is 0, it gives up after the first 5,000 bytes.
struct PatternSource final : public MessageSource {
  PatternSource(ServerCall& its_stream, memory::Pool& its_pool, size_t size, size_t its_part,
                std::function<void()> its_listener)
      : stream(its_stream), pool(its_pool), part(its_part), listener(std::move(its_listener)) {
    pattern = Pattern(0, size);
    made = std::min<size_t>(size, 5'000);
  }
  memory::Piece MakeMore() override {
    ++calls;
    listener();
    memory::Piece more;
    more.size = std::min(part, pattern.size() - made);
    if (more.size == 0) {
      stream.Interrupt(absl::ResourceExhaustedError("no more"));
      return {};
    }
    more.buffer = pool.Allocate(more.size);
    more.begin = more.buffer.data();
    std::copy_n(pattern.data() + made, more.size, more.begin);
    made += more.size;
    return more;
  }
  ServerCall& stream;
  memory::Pool& pool;
  const size_t part;
  const std::function<void()> listener;
  std::string pattern;
  size_t made = 0;
  int calls = 0;
};

// Continues an iteration later.
struct Later final : public loop::Posted {
  explicit Later(loop::Loop& its_loop) : loop(its_loop) {}
  bool await_ready() const noexcept { return false; }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> handle) noexcept {
    call = handle;
    loop.AtIterationEnd(*this);
  }
  void await_resume() const noexcept {}
  void Run() override { call.resume(); }
  loop::Loop& loop;
  std::coroutine_handle<> call;
};

struct Interrupted final : public Cancellable {
  explicit Interrupted(ServerCall& its_stream) : stream(its_stream) {}
  void Cancel() override { stream.loop().Complete(event, true); }
  ServerCall& stream;
  loop::Event event;
};

}  // namespace

World::World(const Options& options)
    : receiving_(options.budget, options.window, options.max_waiting),
      context_{*this, pool_, receiving_, options.limits},
      socket_bytes_(options.socket_bytes),
      loop_(loop::NewLoop()),
      set_(std::make_unique<ConnectionSet>(context_, *loop_)),
      thread_([this] { loop_->Lead(); }) {}

World::~World() {
  Run([this] { set_->Close(); });
  {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this] { return live_ == 0; }));
  }
  // Functions that ended calls may still have posted.
  Run([] {});
  Run([] {});
  loop_->Stop();
  thread_.join();
  EXPECT_EQ(receiving_.held_bytes(), 0U);
  EXPECT_EQ(context_.calls.taken(), 0U);
  EXPECT_EQ(context_.connections.taken(), 0U);
  EXPECT_EQ(context_.counters.throttled_now, 0);
  EXPECT_EQ(pool_.used_bytes(), 0U);
}

int World::Connect(uint64_t peer) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const int bytes = 4 << 20;
  setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  Run([&] {
    EXPECT_TRUE(Connection::Open(*set_, ends[0], {peer, "test"}));
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &socket_bytes_, sizeof(socket_bytes_));
  });
  return ends[1];
}

World::Pause::Pause(World& world)
    : job_([this] {
        paused_.count_down();
        over_.wait();
        done_.count_down();
      }) {
  world.loop().Post(job_);
  paused_.wait();
}

World::Pause::~Pause() {
  over_.count_down();
  done_.wait();
}

Seen World::When(const std::string& path, const std::function<bool(const Seen&)>& so) {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return so(seen_[path]); })) << path;
  return seen_[path];
}

Seen World::Over(const std::string& path) {
  return When(path, [](const Seen& seen) { return seen.over; });
}

void World::Release(const std::string& path, int messages) {
  const std::lock_guard lock(mutex_);
  released_[path] += messages;
}

int World::Releases(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return released_[path];
}

bool World::Empty() {
  for (int i = 0; i < 2'000; ++i) {
    if (context_.calls.taken() == 0 && context_.connections.taken() == 0 && live_ == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

void World::Note(const std::string& path, const std::function<void(Seen&)>& what) {
  const std::lock_guard lock(mutex_);
  what(seen_[path]);
  changed_.notify_all();
}

int World::Find(absl::string_view path) const {
  for (size_t i = 0; i < kMethods.size(); ++i) {
    if (absl::StartsWith(path, std::string("/t/") + std::string(kMethods[i]) + "/")) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

wire::CallStatus World::Refuse(const ServerCall&, int, const absl::Status& status) const {
  ++refused;
  return ToStatus(status);
}

void World::Begin(ServerCall& stream) {
  ++live_;
  Serve(stream);
}

loop::Detached World::Serve(ServerCall& stream) {
  const std::string path = stream.head().path();
  const absl::string_view method = kMethods[static_cast<size_t>(stream.method())];
  Note(path, [](Seen& seen) { ++seen.begun; });
  loop::Event read, written, finished;
  int taken = 0;
  const bool one = method == "Wait";
  bool more = method != "Send" && method != "Small" && method != "Made";
  while (more) {
    Message message;
    read.Reset();
    stream.Read(message, read);
    more = co_await read;
    if (!more) break;
    const std::string bytes(reinterpret_cast<const char*>(message.bytes().data()), message.size);
    Note(path, [&](Seen& seen) { seen.messages.push_back(bytes); });
    if (method == "Late") {
      while (Releases(path) <= taken && !stream.interrupted()) {
        Later later(stream.loop());
        co_await later;
        std::this_thread::yield();
      }
    }
    ++taken;
    message = Message();
    stream.Taken();
    if (method == "Echo") {
      written.Reset();
      stream.Write(ToPiece(bytes, pool_), written);
      const bool ok = co_await written;
      if (!ok) break;
      Note(path, [](Seen& seen) { ++seen.written; });
    }
    if (one) break;
  }
  if (one && !stream.interrupted()) {
    Interrupted interrupted(stream);
    stream.WaitsFor(&interrupted);
    co_await interrupted.event;
    stream.WaitsFor(nullptr);
  }
  int count = 0;
  size_t size = 0;
  if (method == "Send" || method == "Small") {
    std::sscanf(path.c_str() + 3 + method.size() + 1, "%dx%zu", &count, &size);
  }
  for (int i = 0; i < count; ++i) {
    const bool small = method == "Small";
    const std::string bytes =
        Pattern(static_cast<uint64_t>(i), small ? std::min<size_t>(3 + i % 7, size) : size);
    written.Reset();
    stream.Write(ToPiece(bytes, pool_, small ? 1 << 20 : 0), written);
    const bool ok = co_await written;
    if (!ok) break;
    Note(path, [](Seen& seen) { ++seen.written; });
  }
  std::optional<PatternSource> source;
  if (method == "Made") {
    size_t part = 0;
    std::sscanf(path.c_str(), "/t/Made/%zux%zu", &size, &part);
    source.emplace(stream, pool_, size, part, [this] {
      ++made_;
      if (on_made) on_made(made_);
    });
    stream.WriteAsMade(ToPiece(absl::string_view(source->pattern).substr(0, source->made), pool_),
                       size, *source, written);
  }
  const absl::Status end = stream.interrupted() ? stream.interruption() : absl::OkStatus();
  Note(path, [](Seen& seen) { seen.ending = true; });
  stream.Finish(ToStatus(end), finished);
  if (source.has_value()) {
    const bool ok = co_await written;
    Note(path, [&](Seen& seen) {
      if (ok) ++seen.written;
      seen.made = source->calls;
    });
  }
  const bool sent = co_await finished;
  const absl::Status why = stream.interrupted() ? stream.interruption() : absl::OkStatus();
  stream.End();
  const std::lock_guard lock(mutex_);
  --live_;
  Seen& seen = seen_[path];
  seen.interruption = why;
  seen.sent = sent;
  seen.over = true;
  changed_.notify_all();
}

}  // namespace quantd::transport
