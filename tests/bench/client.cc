#include "client.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <thread>
#include <utility>

namespace quantd::bench {
namespace {

using Clock = std::chrono::steady_clock;
using grpc::ByteBuffer;

double Seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address, const std::string& certificate) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto credentials = certificate.empty() ? grpc::InsecureChannelCredentials()
                                               : grpc::SslCredentials({certificate, "", ""});
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

// The part of a turn that counts.
class Window {
 public:
  Window(const Work& work, double seconds, const Process& server)
      : server_(server),
        lead_calls_(static_cast<uint64_t>(work.in_flight) * std::max(work.window, 1)),
        least_calls_(8 + 2 * lead_calls_),
        seconds_(seconds),
        start_(Clock::now()) {}

  // Call when a call or an item has ended, with the time when it began.
  void Ended(Clock::time_point begun, bool good) {
    ++load_.total;
    if (!good) ++load_.errors;
    if (over_) return;
    const Clock::time_point now = Clock::now();
    if (!counting_) {
      counting_ = ++lead_seen_ >= lead_calls_ && Seconds(start_, now) >= seconds_ / 10;
      if (!counting_) return;
      before_ = server_.Read();
      begin_ = Clock::now();
      return;
    }
    ++load_.calls;
    load_.latencies.push_back(Seconds(begun, now));
    load_.seconds = Seconds(begin_, now);
    over_ = load_.seconds >= seconds_ && load_.calls >= least_calls_;
    if (over_) load_.used = server_.Read().Since(before_);
  }
  // Whether no further call may begin.
  bool over() const { return over_; }
  // Call for an end without a response, such as a stream's, if it is an error: it ends the turn.
  void Failed() {
    ++load_.errors;
    over_ = true;
  }
  Load Take() { return std::move(load_); }

 private:
  const Process& server_;
  const uint64_t lead_calls_, least_calls_;
  const double seconds_;
  const Clock::time_point start_;
  uint64_t lead_seen_ = 0;
  bool counting_ = false;
  bool over_ = false;
  Clock::time_point begin_;
  Usage before_;
  Load load_;
};

struct UnarySlot {
  grpc::GenericStub* stub = nullptr;
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<ByteBuffer>> reader;
  ByteBuffer response;
  grpc::Status status;
  Clock::time_point begun;
};

struct StreamSlot;
struct Tag {
  enum class Kind { kStart, kWrite, kRead, kHalfClose, kFinish };
  StreamSlot* slot;
  Kind kind;
};

// One stream: a read is always in flight, and a write while there is room in the window.
struct StreamSlot {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  ByteBuffer response;
  grpc::Status status;
  std::deque<Clock::time_point> begun;  // of the unanswered items
  bool writing = false;
  bool closed = false;
  Tag start{this, Tag::Kind::kStart}, write{this, Tag::Kind::kWrite}, read{this, Tag::Kind::kRead},
      half_close{this, Tag::Kind::kHalfClose}, finish{this, Tag::Kind::kFinish};

  void Advance(const Work& work, bool over) {
    if (writing || closed) return;
    if (!over && begun.size() < static_cast<size_t>(work.window)) {
      begun.push_back(Clock::now());
      writing = true;
      stream->Write(work.request, &write);
    } else if (over && begun.empty()) {
      closed = true;
      stream->WritesDone(&half_close);
    }
  }
};

void Drain(grpc::CompletionQueue& queue) {
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
  }
}

}  // namespace

ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return ByteBuffer(&slice, 1);
}

Client::Client(const std::string& address, int connections, int threads,
               const std::string& certificate)
    : threads_(threads) {
  for (int i = 0; i < std::max(connections, threads); ++i) {
    const auto channel = Connect(address, certificate);
    channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
    threads_[i % threads].push_back(std::make_unique<grpc::GenericStub>(channel));
  }
}

grpc::Status Client::Call(const std::string& method, const ByteBuffer& request,
                          ByteBuffer& response, int connection) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const Stubs& stubs = threads_[0];
  auto reader = stubs[static_cast<size_t>(connection) % stubs.size()]->PrepareUnaryCall(
      &context, method, request, &queue);
  reader->StartCall();
  grpc::Status status;
  reader->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  Drain(queue);
  return status;
}

std::string Client::Call(const std::string& method, const std::string& request) {
  ByteBuffer response;
  std::string text;
  if (!Call(method, ToBuffer(request), response).ok()) return text;
  std::vector<grpc::Slice> slices;
  response.Dump(&slices);
  for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  return text;
}

Load Client::Run(const Work& work, double seconds, const Process& server) {
  if (threads_.size() == 1) return RunOne(threads_[0], work, seconds, server);
  const auto count = static_cast<int>(threads_.size());
  std::vector<Load> loads(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    Work share = work;
    share.in_flight = std::max(1, (work.in_flight + count - 1 - i) / count);
    threads.emplace_back([this, i, share, seconds, &server, &loads] {
      loads[i] = RunOne(threads_[i], share, seconds, server);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Their times nearly coincide: the server's usage is taken from the first one.
  Load sum = std::move(loads[0]);
  for (int i = 1; i < count; ++i) {
    Load& load = loads[i];
    if (load.seconds > 0) load.calls = std::llround(load.calls * sum.seconds / load.seconds);
    sum.calls += load.calls;
    sum.total += load.total;
    sum.errors += load.errors;
    sum.latencies.insert(sum.latencies.end(), load.latencies.begin(), load.latencies.end());
  }
  return sum;
}

Load Client::RunOne(const Stubs& stubs, const Work& work, double seconds, const Process& server) {
  return work.window > 0 ? Stream(stubs, work, seconds, server)
                         : Unary(stubs, work, seconds, server);
}

Load Client::Unary(const Stubs& stubs, const Work& work, double seconds, const Process& server) {
  grpc::CompletionQueue queue;
  std::vector<UnarySlot> slots(work.in_flight);
  const auto start = [&](UnarySlot& slot) {
    slot.begun = Clock::now();
    slot.context = std::make_unique<grpc::ClientContext>();
    slot.reader =
        slot.stub->PrepareUnaryCall(slot.context.get(), work.method, work.request, &queue);
    slot.reader->StartCall();
    slot.response.Clear();
    slot.reader->Finish(&slot.response, &slot.status, &slot);
  };
  Window window(work, seconds, server);
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i].stub = stubs[i % stubs.size()].get();
    start(slots[i]);
  }
  size_t live = slots.size();
  void* tag = nullptr;
  bool ok = false;
  while (live > 0 && queue.Next(&tag, &ok)) {
    UnarySlot& slot = *static_cast<UnarySlot*>(tag);
    window.Ended(slot.begun, slot.status.ok());
    if (window.over()) {
      --live;
    } else {
      start(slot);
    }
  }
  Drain(queue);
  return window.Take();
}

Load Client::Stream(const Stubs& stubs, const Work& work, double seconds, const Process& server) {
  grpc::CompletionQueue queue;
  std::vector<StreamSlot> slots(work.in_flight);
  Window window(work, seconds, server);
  for (size_t i = 0; i < slots.size(); ++i) {
    StreamSlot& slot = slots[i];
    slot.stream = stubs[i % stubs.size()]->PrepareCall(&slot.context, work.method, &queue);
    slot.stream->StartCall(&slot.start);
  }
  size_t live = slots.size();
  void* next = nullptr;
  bool ok = false;
  while (live > 0 && queue.Next(&next, &ok)) {
    const Tag& tag = *static_cast<Tag*>(next);
    StreamSlot& slot = *tag.slot;
    switch (tag.kind) {
      case Tag::Kind::kStart:
        slot.stream->Read(&slot.response, &slot.read);
        if (ok) slot.Advance(work, window.over());
        break;
      case Tag::Kind::kWrite:
        slot.writing = !ok;  // after a failed write, never again
        slot.Advance(work, window.over());
        break;
      case Tag::Kind::kRead:
        if (!ok) {
          slot.stream->Finish(&slot.status, &slot.finish);
          break;
        }
        window.Ended(slot.begun.front(), true);
        slot.begun.pop_front();
        slot.Advance(work, window.over());
        slot.stream->Read(&slot.response, &slot.read);
        break;
      case Tag::Kind::kHalfClose:
        break;
      case Tag::Kind::kFinish:
        if (!slot.status.ok()) window.Failed();
        --live;
        break;
    }
  }
  Drain(queue);
  return window.Take();
}

}  // namespace quantd::bench
