#include "server/trace/poster.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/log/log.h"

namespace quantd::trace {
namespace {

using access::Free;
using Base = std::unique_ptr<event_base, Free<event_base_free>>;
using Event = std::unique_ptr<event, Free<event_free>>;
using Connection = std::unique_ptr<evhttp_connection, Free<evhttp_connection_free>>;
using Clock = std::chrono::steady_clock;

constexpr ssize_t kMostHeaders = 16 << 10;
constexpr ssize_t kMostBody = 64 << 10;
constexpr std::chrono::minutes kTlsFilesAreGood(1);
constexpr size_t kMostAddresses = 8;

// The result of one request.
struct Outcome {
  event_base* base;
  bool over = false;
  int code = 0;  // 0: the connection broke, or was never made
};

void OnResponse(evhttp_request* request, void* of) {
  Outcome& outcome = *static_cast<Outcome*>(of);
  outcome.over = true;
  outcome.code = request == nullptr ? 0 : evhttp_request_get_response_code(request);
  event_base_loopbreak(outcome.base);
}

// Any number of informational responses may precede a response, and libevent accumulates their
// headers.
int RefuseInformational(evhttp_request* request, void*) {
  const int code = evhttp_request_get_response_code(request);
  return code >= 100 && code < 200 ? -1 : 0;
}

void OnInterrupt(evutil_socket_t, short, void* base) {
  event_base_loopbreak(static_cast<event_base*>(base));
}

// Compresses with gzip. Empty if the system is out of memory.
std::string Gzip(const std::string& body) {
  constexpr int kGzip = 16, kMemoryLevel = 8;
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip + MAX_WBITS, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string out(deflateBound(&stream, body.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(result == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

// Why there was no response.
std::string Broken(const std::string& host, const SSL* tls) {
  if (tls == nullptr) return absl::StrCat(host, " cannot be reached, or does not answer in HTTP");
  const long wrong = SSL_get_verify_result(tls);
  if (wrong == X509_V_OK) {
    return absl::StrCat(host, " cannot be reached over TLS, or does not answer in HTTP");
  }
  return absl::StrCat("the certificate of ", host,
                      " is not trusted: ", X509_verify_cert_error_string(wrong));
}

// Logs what libevent would write to stderr in its own format.
void LogLibevent(int severity, const char* text) {
  if (severity < EVENT_LOG_WARN) return;
  static log::Repeated warned(log::Level::kWarn, "libevent");
  warned.Write([&] { return log::Fields{{"message", text}}; });
}

}  // namespace

struct Poster::Parts {
  Base base;
  int interrupt = -1;
  Event on_interrupt;
  TlsContext tls;  // null: made for the next post
  Clock::time_point tls_read;
};

Poster::Poster(Destination destination)
    : destination_(std::move(destination)), parts_(std::make_unique<Parts>()) {
  event_set_log_callback(LogLibevent);
  parts_->base.reset(event_base_new());
  parts_->interrupt = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  event_base* const base = parts_->base.get();
  if (base == nullptr || parts_->interrupt < 0) return;
  parts_->on_interrupt.reset(
      event_new(base, parts_->interrupt, EV_READ | EV_PERSIST, OnInterrupt, base));
  event_add(parts_->on_interrupt.get(), nullptr);
}

Poster::~Poster() {
  parts_->on_interrupt.reset();
  parts_->base.reset();
  if (parts_->interrupt >= 0) close(parts_->interrupt);
}

void Poster::Interrupt() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = write(parts_->interrupt, &one, sizeof(one));
}

absl::StatusOr<Tls> Poster::TakeTls() {
  if (!destination_.endpoint.tls) return Tls();
  const Clock::time_point now = Clock::now();
  if (parts_->tls == nullptr || now - parts_->tls_read > kTlsFilesAreGood) {
    parts_->tls.reset();
    absl::StatusOr<TlsContext> context = MakeTlsContext(destination_.tls);
    if (!context.ok()) return absl::UnavailableError(context.status().message());
    parts_->tls = *std::move(context);
    parts_->tls_read = now;
  }
  Tls tls = MakeTls(*parts_->tls, destination_.endpoint.host);
  if (tls == nullptr) return absl::UnavailableError("no memory is left");
  return tls;
}

std::vector<std::string> AddressesOf(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  std::vector<std::string> addresses;
  for (const addrinfo* next = found; next != nullptr && addresses.size() < kMostAddresses;
       next = next->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(next->ai_addr, next->ai_addrlen, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text);
    }
  }
  freeaddrinfo(found);
  return addresses;
}

// libevent tries only the first address of a name; for "localhost" that is often ::1, not
// 127.0.0.1.
absl::Status Poster::Post(const std::string& body, std::chrono::milliseconds most) {
  if (parts_->base == nullptr) return absl::UnavailableError("no descriptors are left");
  const std::string& host = destination_.endpoint.host;
  const std::vector<std::string> addresses = destination_.addresses_of(host);
  const std::string packed = destination_.gzip ? Gzip(body) : body;
  const Clock::time_point end = Clock::now() + most;
  absl::Status status = absl::UnavailableError(absl::StrCat(host, " has no address"));
  bool goes_on = true;
  for (size_t i = 0; i < addresses.size() && goes_on; ++i) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) break;
    status = PostTo(addresses[i], packed, left / static_cast<int>(addresses.size() - i), goes_on);
  }
  return status;
}

// `goes_on`: whether to try another address.
absl::Status Poster::PostTo(const std::string& address, const std::string& packed,
                            std::chrono::milliseconds most, bool& goes_on) {
  event_base* const base = parts_->base.get();
  goes_on = false;
  absl::StatusOr<Tls> tls = TakeTls();
  if (!tls.ok()) return tls.status();
  bufferevent* socket = nullptr;  // a TCP connection, unless it is made here
  if (*tls != nullptr) {
    socket = bufferevent_openssl_socket_new(base, -1, tls->get(), BUFFEREVENT_SSL_CONNECTING,
                                            BEV_OPT_CLOSE_ON_FREE);
    if (socket == nullptr) return absl::UnavailableError("no memory is left");
    SSL_up_ref(tls->get());  // needed for the error after the connection is gone
  }
  Outcome outcome{base};
  const Endpoint& endpoint = destination_.endpoint;
  const Connection connection(evhttp_connection_base_bufferevent_new(
      base, nullptr, socket, address.c_str(), endpoint.port));
  evhttp_request* const request = evhttp_request_new(OnResponse, &outcome);
  if (connection == nullptr || request == nullptr) {
    if (request != nullptr) evhttp_request_free(request);
    return absl::UnavailableError("no memory is left");
  }
  evhttp_connection_set_max_headers_size(connection.get(), kMostHeaders);
  evhttp_connection_set_max_body_size(connection.get(), kMostBody);
  evhttp_request_set_header_cb(request, RefuseInformational);
  // Limits the line before a chunk, which libevent does not limit.
  bufferevent_setwatermark(evhttp_connection_get_bufferevent(connection.get()), EV_READ, 0,
                           kMostHeaders + kMostBody);
  evkeyvalq* const headers = evhttp_request_get_output_headers(request);
  const std::string host = HostAndPort(endpoint);
  evhttp_add_header(headers, "Host", host.c_str());
  evhttp_add_header(headers, "Content-Type", "application/x-protobuf");
  evhttp_add_header(headers, "User-Agent", "quantd");
  evhttp_add_header(headers, "Connection", "close");
  if (destination_.gzip) evhttp_add_header(headers, "Content-Encoding", "gzip");
  for (const auto& [name, value] : destination_.headers) {
    evhttp_remove_header(headers, name.c_str());
    evhttp_add_header(headers, name.c_str(), value.c_str());
  }
  evbuffer_add(evhttp_request_get_output_buffer(request), packed.data(), packed.size());
  // The connection owns the request from now on, even if this fails.
  if (evhttp_make_request(connection.get(), request, EVHTTP_REQ_POST, endpoint.path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("can't connect to ", host));
  }
  const timeval time = {most.count() / 1000, most.count() % 1000 * 1000};
  const Event timer(event_new(base, -1, 0, OnInterrupt, base));
  event_add(timer.get(), &time);
  event_base_dispatch(base);
  if (outcome.over && outcome.code / 100 == 2) return absl::OkStatus();
  goes_on = outcome.code == 0;
  parts_->tls.reset();  // the files may have changed by the next time
  if (!outcome.over) return absl::UnavailableError(absl::StrCat(host, " does not answer in time"));
  if (outcome.code == 0) return absl::UnavailableError(Broken(host, tls->get()));
  const std::string text = absl::StrCat(host, " answers with status ", outcome.code);
  // The statuses that the protocol calls retryable.
  for (const int later : {429, 502, 503, 504}) {
    if (outcome.code == later) return absl::UnavailableError(text);
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace quantd::trace
