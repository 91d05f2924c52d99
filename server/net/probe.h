// Checks, as a client would, whether a gRPC port answers to HTTP/2 or to TLS.
#ifndef QUANTD_SERVER_NET_PROBE_H_
#define QUANTD_SERVER_NET_PROBE_H_

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

namespace quantd::net {

// The result of a probe.
enum class Found {
  kServer,   // The port speaks HTTP/2, or TLS.
  kFull,     // The server accepts and closes the connection at once: it has as many as it may have.
  kNobody,   // Nothing listens, or the listener is silent or speaks something else.
  kUnknown,  // This process has no descriptor, port or memory left for the probe.
};

// Connects to HOST:PORT or unix:/PATH (0.0.0.0 and [::]: the machine's loopback), sends HTTP/2's
// preface, or `tls_hello`, a TLS client's first bytes, if it is not empty, and waits for the first
// bytes of the response. Blocks for at most `patience`.
Found Probe(const std::string& address, const std::string& tls_hello,
            std::chrono::milliseconds patience);

// Probes one address on request.
class Prober {
 public:
  explicit Prober(std::string address, std::string tls_hello = "")
      : address_(std::move(address)), tls_hello_(std::move(tls_hello)) {}

  // Returns the result so far and requests another probe. True until two consecutive probes have
  // found nobody: a full server is alive, and kUnknown says nothing. Does not block; safe from any
  // thread.
  bool Alive() {
    wanted_.store(true);
    return failures_.load() < 2;
  }
  // Probes, for at most a second, if Alive has requested it. From one thread.
  void Look();

 private:
  const std::string address_;
  const std::string tls_hello_;
  std::atomic<bool> wanted_{false};
  std::atomic<int> failures_{0};  // Consecutive ones.
};

}  // namespace quantd::net

#endif  // QUANTD_SERVER_NET_PROBE_H_
