#include "client.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace quantd::transport {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t Number(absl::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

}  // namespace

std::string Client::Response::Trailer(absl::string_view name) const {
  for (const auto& [key, value] : trailers) {
    if (key == name) return value;
  }
  return "";
}

int Client::Response::status() const {
  const std::string text = Trailer("grpc-status");
  return text.empty() ? -1 : std::atoi(text.c_str());
}

std::optional<std::vector<std::string>> Client::Response::Messages() const {
  std::vector<std::string> messages;
  absl::string_view left = data;
  while (!left.empty()) {
    if (left.size() < 5 || left[0] != 0) return std::nullopt;
    const size_t size = Number(left.substr(1, 4));
    if (left.size() - 5 < size) return std::nullopt;
    messages.emplace_back(left.substr(5, size));
    left.remove_prefix(5 + size);
  }
  return messages;
}

Client::Client(int fd, const std::vector<std::pair<uint16_t, uint32_t>>& settings) : fd_(fd) {
  nghttp2_hd_inflate_new(&inflater_);
  Say(kPreface);
  Say(Settings(settings));
}

Client::~Client() {
  nghttp2_hd_inflate_del(inflater_);
  close(fd_);
}

bool Client::Pump(std::chrono::milliseconds patience) {
  if (closed_) return false;
  pollfd one = {fd_, static_cast<short>((deaf ? 0 : POLLIN) | (out_.empty() ? 0 : POLLOUT)), 0};
  if (poll(&one, 1, static_cast<int>(patience.count())) <= 0) return true;
  if ((one.revents & POLLOUT) != 0) {
    const size_t size = std::min(out_.size(), write_at_once);
    const ssize_t count = send(fd_, out_.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) out_.erase(0, static_cast<size_t>(count));
    if (count < 0 && errno != EAGAIN) out_.clear();  // what the server has sent may still be read
  }
  if ((one.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !deaf) {
    std::array<char, 64 << 10> bytes;
    const ssize_t count = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) closed_ = true;
    if (count > 0) in_.append(bytes.data(), static_cast<size_t>(count));
    Parse();
  }
  return !closed_;
}

bool Client::Until(const std::function<bool()>& so, std::chrono::milliseconds patience) {
  const Clock::time_point until = Clock::now() + patience;
  while (!so()) {
    if (!Pump() || Clock::now() > until) return so();
  }
  return true;
}

bool Client::Written() {
  return Until([this] { return out_.empty(); });
}

bool Client::Taken() {
  return Until([this] {
    int left = 0;
    return out_.empty() && ioctl(fd_, SIOCOUTQ, &left) == 0 && left == 0;
  });
}

bool Client::Heard() {
  const uint64_t word = 0xBEEF0000 + ++pings_;
  Say(Ping(word));
  return Until([&] { return std::find(pongs_.begin(), pongs_.end(), word) != pongs_.end(); });
}

int Client::Status(int32_t id) {
  Until([&] { return streams_[id].ended || streams_[id].reset.has_value(); });
  return streams_[id].status();
}

int64_t Client::Room(int32_t id) {
  return std::min(initial_window_ + streams_[id].granted - sent_[id],
                  connection_granted_ - connection_sent_);
}

bool Client::SayFrames(int32_t id, absl::string_view bytes, size_t frame, bool ends, int padding) {
  do {
    const Response& response = streams_[id];
    const auto over = [&] { return response.ended || response.reset.has_value() || closed_; };
    const int64_t payload = bytes.empty() ? 0 : 1;
    const bool waits = pads_always && padding >= 0 && padded_[id];
    const int64_t least = waits ? payload + 1 + padding : payload;
    if (!Until([&] { return over() || Room(id) >= least; })) return false;
    if (over()) return true;
    const int pad = Room(id) < payload + 1 + padding ? -1 : padding;
    const size_t extra = pad < 0 ? 0 : 1 + static_cast<size_t>(pad);
    padded_[id] = padded_[id] || pad >= 0;
    const size_t size = std::min({frame, bytes.size(), static_cast<size_t>(Room(id)) - extra});
    Say(Data(id, bytes.substr(0, size), ends && size == bytes.size(), pad));
    bytes.remove_prefix(size);
    sent_[id] += static_cast<int64_t>(size + extra);
    connection_sent_ += static_cast<int64_t>(size + extra);
    if (out_.size() > (256 << 10) && !Written()) return false;
  } while (!bytes.empty());
  return true;
}

void Client::Parse() {
  absl::string_view left = in_;
  while (left.size() >= 9) {
    const size_t size = Number(left.substr(0, 3));
    if (left.size() < 9 + size) break;
    OnFrame(static_cast<uint8_t>(left[3]), static_cast<uint8_t>(left[4]),
            static_cast<int32_t>(Number(left.substr(5, 4))), left.substr(9, size));
    left.remove_prefix(9 + size);
  }
  in_.erase(0, in_.size() - left.size());
}

void Client::OnFrame(uint8_t type, uint8_t flags, int32_t id, absl::string_view payload) {
  switch (type) {
    case kDataFrame:
      streams_[id].data.append(payload.data(), payload.size());
      if ((flags & kEndStream) != 0) streams_[id].ended = true;
      if (grants && !payload.empty()) {
        Say(WindowUpdate(0, static_cast<uint32_t>(payload.size())));
        Say(WindowUpdate(id, static_cast<uint32_t>(payload.size())));
      }
      break;
    case kHeadersFrame:
      OnHeaders(streams_[id], payload);
      if ((flags & kEndStream) != 0) streams_[id].ended = true;
      break;
    case kRstFrame:
      streams_[id].reset = static_cast<uint32_t>(Number(payload));
      break;
    case kSettingsFrame:
      if ((flags & kAck) != 0) break;
      for (; payload.size() >= 6; payload.remove_prefix(6)) {
        if (Number(payload.substr(0, 2)) != NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE) continue;
        initial_window_ = static_cast<int64_t>(Number(payload.substr(2, 4)));
      }
      Say(SettingsAck());
      break;
    case kPingFrame:
      if ((flags & kAck) != 0) {
        pongs_.push_back(Number(payload));
      } else {
        Say(Frame(kPingFrame, kAck, 0, payload));
      }
      break;
    case kGoAwayFrame:
      gone_away_ = true;
      break;
    case kWindowFrame:
      if (id == 0) connection_granted_ += static_cast<int64_t>(Number(payload));
      if (id != 0) streams_[id].granted += static_cast<int64_t>(Number(payload));
      break;
    default:
      break;
  }
}

// The server's header blocks are small: one frame each.
void Client::OnHeaders(Response& response, absl::string_view block) {
  Fields fields;
  const auto* next = reinterpret_cast<const uint8_t*>(block.data());
  const auto* const end = next + block.size();
  for (;;) {
    nghttp2_nv field;
    int flags = 0;
    const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, next, end - next, 1);
    if (used < 0) std::abort();
    next += used;
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
      fields.emplace_back(std::string(reinterpret_cast<char*>(field.name), field.namelen),
                          std::string(reinterpret_cast<char*>(field.value), field.valuelen));
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
  }
  nghttp2_hd_inflate_end_headers(inflater_);
  if (response.headers.empty()) response.headers = fields;
  response.trailers = fields;
}

}  // namespace quantd::transport
