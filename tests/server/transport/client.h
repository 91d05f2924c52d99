// A client that sends exactly the frames that a test gives it, and records the replies. One thread.
#ifndef QUANTD_TESTS_SERVER_TRANSPORT_CLIENT_H_
#define QUANTD_TESTS_SERVER_TRANSPORT_CLIENT_H_

#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frames.h"

namespace quantd::transport {

class Client {
 public:
  // What arrived on a stream.
  struct Response {
    Fields headers;   // the first ones
    Fields trailers;  // those that end it, which may be the first ones
    std::string data;
    bool ended = false;
    std::optional<uint32_t> reset;
    int64_t granted = 0;  // by WINDOW_UPDATE

    std::string Trailer(absl::string_view name) const;
    // grpc-status; -1: none has arrived.
    int status() const;
    // The messages in `data`; nothing if it ends in the middle of one.
    std::optional<std::vector<std::string>> Messages() const;
  };

  // Takes over a socket. Sends the preface and `settings`.
  explicit Client(int fd, const std::vector<std::pair<uint16_t, uint32_t>>& settings = {});
  Client(Client&&) = delete;
  ~Client();

  // Queues bytes; the functions below write them.
  void Say(absl::string_view bytes) { out_.append(bytes.data(), bytes.size()); }
  // Writes and reads for a moment. False when the server has closed and everything is read.
  bool Pump(std::chrono::milliseconds patience = std::chrono::milliseconds(20));
  // Waits until so() is true. False: it took too long, or the connection was closed before.
  bool Until(const std::function<bool()>& so,
             std::chrono::milliseconds patience = std::chrono::seconds(20));
  // Waits until all queued bytes are written.
  bool Written();
  // Waits until all queued bytes have left the socket, which must be local.
  bool Taken();
  // Waits until the server has processed all of them: it answers a ping.
  bool Heard();
  // Waits for the end of the stream. Returns its grpc-status, or -1.
  int Status(int32_t id);
  // Sends `bytes` in frames, waiting for the server's windows. False: they stay shut.
  bool SayFrames(int32_t id, absl::string_view bytes, size_t frame, bool ends, int padding = -1);

  // How much the server's windows still let through.
  int64_t Room(int32_t id);

  Response& stream(int32_t id) { return streams_[id]; }
  // Whether the server has sent a GOAWAY.
  bool gone_away() const { return gone_away_; }
  bool closed() const { return closed_; }
  int fd() const { return fd_; }

  // Returns windows for what has arrived.
  bool grants = true;
  // A stream that has padded a frame waits for a window that also has room for the padding. Before,
  // the server grants none for it.
  bool pads_always = false;
  // Reads nothing.
  bool deaf = false;
  // The most bytes that are written at once.
  size_t write_at_once = SIZE_MAX;

 private:
  void Parse();
  void OnFrame(uint8_t type, uint8_t flags, int32_t id, absl::string_view payload);
  void OnHeaders(Response& response, absl::string_view block);

  const int fd_;
  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string out_, in_;
  bool closed_ = false;
  std::map<int32_t, Response> streams_;
  std::map<int32_t, int64_t> sent_;  // bytes of DATA, by SayFrames
  std::map<int32_t, bool> padded_;   // by SayFrames
  int64_t initial_window_ = 65'535;
  int64_t connection_granted_ = 65'535;
  int64_t connection_sent_ = 0;
  bool gone_away_ = false;
  std::vector<uint64_t> pongs_;
  uint64_t pings_ = 0;
};

}  // namespace quantd::transport

#endif  // QUANTD_TESTS_SERVER_TRANSPORT_CLIENT_H_
