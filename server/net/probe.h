// Asks a gRPC port, as a client would, whether it answers: to HTTP/2, or to TLS.
#ifndef QUANTD_SERVER_NET_PROBE_H_
#define QUANTD_SERVER_NET_PROBE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace quantd::net {

// What a probe finds at a port.
enum class Found {
  kServer,   // It speaks HTTP/2, or TLS.
  kFull,     // It takes the connection and closes it without a word: as many are open as may be.
  kNobody,   // Nothing listens, or what does is silent, or speaks something else.
  kUnknown,  // This process has no descriptor, port or memory left to ask with.
};

// Connects to HOST:PORT or unix:/PATH (0.0.0.0 and [::]: the machine's loopback), says HTTP/2's
// first words, or `tls_hello`, a TLS client's, if there is one, and waits for the answer's begin.
// Blocks for `patience` at most.
Found Probe(const std::string& address, const std::string& tls_hello,
            std::chrono::milliseconds patience);

// Probes one address when it is asked, but once a second at most, on a thread of its own.
class Prober {
 public:
  explicit Prober(std::string address, std::string tls_hello = "");
  ~Prober();

  // What the last probe found, and has another one made if that is old. True until two have found
  // nobody one after the other: a server that is full is alive, and what could not be asked says
  // nothing. Does not block.
  bool Alive();

 private:
  void Run();

  const std::string address_;
  const std::string tls_hello_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool wanted_ = false;
  bool ended_ = false;
  std::chrono::steady_clock::time_point probed_at_{};
  std::atomic<int> failures_{0};  // One after the other.
  std::thread thread_;
};

}  // namespace quantd::net

#endif  // QUANTD_SERVER_NET_PROBE_H_
