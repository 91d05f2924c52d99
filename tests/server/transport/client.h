// A client that says exactly the frames that a test wants, and notes what comes back. One thread.
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
  // What came back on a stream.
  struct Response {
    Fields headers;   // the first ones
    Fields trailers;  // those that end it, which may be the first ones
    std::string data;
    bool ended = false;
    std::optional<uint32_t> reset;
    int64_t granted = 0;  // by WINDOW_UPDATE

    std::string Trailer(absl::string_view name) const;
    // grpc-status; -1: none has come.
    int status() const;
    // The messages in `data`; nothing when it ends in the middle of one.
    std::optional<std::vector<std::string>> Messages() const;
  };
  struct GoneAway {
    uint32_t last = 0;
    uint32_t code = 0;
  };

  // Takes over a socket. Says the preface and `settings`.
  explicit Client(int fd, const std::vector<std::pair<uint16_t, uint32_t>>& settings = {});
  Client(Client&&) = delete;
  ~Client();

  // Queues bytes, to be written by what follows.
  void Say(absl::string_view bytes) { out_.append(bytes.data(), bytes.size()); }
  // Writes and reads for a moment. False when the server has closed and everything is read.
  bool Pump(std::chrono::milliseconds patience = std::chrono::milliseconds(20));
  // Until it is so. False: the patience was over, or the connection closed without it.
  bool Until(const std::function<bool()>& so,
             std::chrono::milliseconds patience = std::chrono::seconds(20));
  // Until all that was said is written.
  bool Written();
  // Until all that was said is off the socket, a local one.
  bool Taken();
  // Until all that was said has been read and looked at: a ping is answered.
  bool Heard();
  // Until the stream is over; its grpc-status, or -1.
  int Status(int32_t id);
  // Says it, as far as the server's windows let it, and waits for those. False: they stay shut.
  bool SayFrames(int32_t id, absl::string_view bytes, size_t frame, bool ends, int padding = -1);

  // What the server's windows still let through.
  int64_t Room(int32_t id);

  Response& stream(int32_t id) { return streams_[id]; }
  // What the server allows to be sent, before anything was.
  int64_t initial_window() const { return initial_window_; }
  const std::vector<GoneAway>& gone_away() const { return gone_away_; }
  const std::vector<uint64_t>& pongs() const { return pongs_; }
  const std::map<uint16_t, uint32_t>& settings() const { return settings_; }
  bool closed() const { return closed_; }
  int fd() const { return fd_; }

  // Gives back windows for what has come; answers pings and settings.
  bool grants = true;
  bool answers_pings = true;
  // Waits for a window in which padding has room, too.
  bool pads_always = false;
  // Reads nothing.
  bool deaf = false;
  // Bytes that are written at once, at most.
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
  std::map<uint16_t, uint32_t> settings_;
  int64_t initial_window_ = 65'535;
  int64_t connection_granted_ = 65'535;
  int64_t connection_sent_ = 0;
  std::vector<GoneAway> gone_away_;
  std::vector<uint64_t> pongs_;
  uint64_t pings_ = 0;
};

}  // namespace quantd::transport

#endif  // QUANTD_TESTS_SERVER_TRANSPORT_CLIENT_H_
