// Asks a gRPC port, as a client would, whether it speaks HTTP/2.
#ifndef QUANTD_SERVER_NET_PROBE_H_
#define QUANTD_SERVER_NET_PROBE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace quantd::net {

// Connects to HOST:PORT or unix:/PATH (0.0.0.0 and [::]: the machine's loopback), says HTTP/2's
// first words and waits for the answer. Blocks for `patience` at most.
bool SpeaksHttp2(const std::string& address, std::chrono::milliseconds patience);

// Probes one address when it is asked, but once a second at most, on a thread of its own.
class Prober {
 public:
  explicit Prober(std::string address);
  ~Prober();

  // What the last probe found, and has another one made if that is old. True until two have failed
  // one after the other. Does not block.
  bool Alive();

 private:
  void Run();

  const std::string address_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool wanted_ = false;
  bool ended_ = false;
  std::chrono::steady_clock::time_point probed_at_{};
  std::atomic<int> failures_{0};
  std::thread thread_;
};

}  // namespace quantd::net

#endif  // QUANTD_SERVER_NET_PROBE_H_
