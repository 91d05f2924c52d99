#include "server/transport/inflater.h"

#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quantd::transport {
namespace {

// The bytes written per iteration, some 0.3 ms, and the longest time for it: blocks that contain
// nothing take 0.13 s per MiB and write nothing. The clock is checked after this many bytes of
// input.
constexpr size_t kSlice = 256 << 10;
constexpr std::chrono::microseconds kSliceTime{300};
constexpr size_t kInput = 4 << 10;
// gzip ends with the original length modulo 2^32.
constexpr size_t kGzipLength = 4;

// A state of zlib takes some 40 KiB, which no permit covers: at most this many messages are begun.
constexpr size_t kMostBegun = 32;

}  // namespace

struct InflateState {
  z_stream stream = {};
  memory::Buffer buffer;
  size_t most = 0;  // bytes that may be written; the buffer has room for one more
  size_t left = 0;  // bytes of the message that zlib has not got yet
  ~InflateState() { inflateEnd(&stream); }
};

Inflating::Inflating() = default;

Inflating::~Inflating() = default;

Inflater::Inflater(loop::Loop& loop, memory::Pool& pool) : loop_(loop), pool_(pool) {}

Inflater::~Inflater() = default;

void Inflater::Add(Inflating& message, uint64_t peer, Encoding encoding,
                   absl::Span<const uint8_t> bytes, size_t most) {
  message.compressed_by_ = encoding;
  message.compressed_ = bytes;
  message.most_inflated_ = most;
  waiting_.Push(message, peer, 0);
  if (!std::exchange(posted_, true)) loop_.AtIterationEnd(*this);
}

void Inflater::Remove(Inflating& message) {
  if (message.queued()) TakeOut(message);
}

std::unique_ptr<InflateState> Inflater::TakeOut(Inflating& message) {
  waiting_.Remove(message, false);
  if (message.state_ != nullptr) --begun_;
  return std::move(message.state_);
}

absl::Status Inflater::Begin(Inflating& message) {
  size_t size = message.most_inflated_;
  if (message.compressed_by_ == Encoding::kGzip && message.compressed_.size() >= kGzipLength) {
    const uint8_t* const end = message.compressed_.end();
    const size_t says = end[-4] | end[-3] << 8 | end[-2] << 16 | size_t{end[-1]} << 24;
    if (says > size) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the request takes ", says, " bytes when it is inflated, the server allows ", size));
    }
    size = says;
  }
  auto state = std::make_unique<InflateState>();
  state->most = size;
  state->buffer = pool_.Allocate(size + 1);
  if (state->buffer.data() == nullptr ||
      inflateInit2(&state->stream, WindowBits(message.compressed_by_)) != Z_OK) {
    return absl::ResourceExhaustedError(absl::StrCat("the system has no ", size, " bytes"));
  }
  state->stream.next_in = const_cast<uint8_t*>(message.compressed_.data());
  state->left = message.compressed_.size();
  state->stream.next_out = state->buffer.data();
  message.state_ = std::move(state);
  ++begun_;
  return absl::OkStatus();
}

bool Inflater::Go(const Inflating& message, absl::Status& status) {
  InflateState& state = *message.state_;
  z_stream& stream = state.stream;
  const size_t room = state.most + 1 - stream.total_out;
  stream.avail_out = static_cast<uInt>(std::min(room, kSlice));
  const auto until = loop::Clock::now() + kSliceTime;
  int result;
  do {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min(state.left, kInput));
      state.left -= stream.avail_in;
    }
    result = inflate(&stream, Z_NO_FLUSH);
  } while (result == Z_OK && stream.avail_out != 0 && state.left != 0 &&
           loop::Clock::now() < until);
  const size_t unread = stream.avail_in + state.left;
  if (stream.total_out > state.most) {
    if (state.most < message.most_inflated_) {
      status = absl::InvalidArgumentError(absl::StrCat("the message contains more than the ",
                                                       state.most, " bytes that it declares"));
    } else {
      status = absl::ResourceExhaustedError(
          absl::StrCat("the request takes over ", message.most_inflated_,
                       " bytes when it is inflated, which is the server's limit"));
    }
    return false;
  }
  if (result == Z_STREAM_END) {
    if (unread == 0) return false;
    status = absl::InvalidArgumentError(
        absl::StrCat(unread, " bytes come after the end of the compressed message"));
    return false;
  }
  // All available input was read, so the rest is missing.
  const bool ends_early = result == Z_BUF_ERROR || (unread == 0 && stream.avail_out != 0);
  if (result == Z_OK && !ends_early) return true;
  status = absl::InvalidArgumentError(
      absl::StrCat("the message is not valid ", NameOf(message.compressed_by_), ": ",
                   ends_early              ? "it ends too early"
                   : stream.msg != nullptr ? stream.msg
                                           : "its data is damaged"));
  return false;
}

Inflating* Inflater::Next() const {
  return static_cast<Inflating*>(
      waiting_.FirstOf([this](const scheduling::FairQueue::Entry& entry) {
        return begun_ < kMostBegun || static_cast<const Inflating&>(entry).state_ != nullptr;
      }));
}

void Inflater::Run() {
  posted_ = false;
  Inflating* const message = Next();
  if (message == nullptr) return;
  const auto began_at = loop::Clock::now();
  absl::Status status;
  if (message->state_ == nullptr) status = Begin(*message);
  if (status.ok() && Go(*message, status)) {
    waiting_.Charge(*message, static_cast<uint64_t>((loop::Clock::now() - began_at).count()));
  } else {
    const std::unique_ptr<InflateState> state = TakeOut(*message);
    if (status.ok()) {
      const size_t size = state->stream.total_out;
      message->OnInflated(status, std::move(state->buffer), size);
    } else {
      message->OnInflated(status, memory::Buffer(), 0);
    }
  }
  if (!waiting_.empty() && !std::exchange(posted_, true)) loop_.AtIterationEnd(*this);
}

}  // namespace quantd::transport
