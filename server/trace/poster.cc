// See poster.h.
#include "server/trace/poster.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace quantd::trace {
namespace {

constexpr ssize_t kMostHeaders = 16 << 10;
constexpr ssize_t kMostBody = 64 << 10;

template <auto free>
struct Free {
  template <typename T>
  void operator()(T* pointer) const {
    free(pointer);
  }
};
using Base = std::unique_ptr<event_base, Free<event_base_free>>;
using Event = std::unique_ptr<event, Free<event_free>>;
using Connection = std::unique_ptr<evhttp_connection, Free<evhttp_connection_free>>;
using Uri = std::unique_ptr<evhttp_uri, Free<evhttp_uri_free>>;

// What became of one request.
struct Outcome {
  event_base* base;
  bool over = false;
  int code = 0;  // 0: the connection broke, or never was
};

void OnAnswer(evhttp_request* request, void* of) {
  Outcome& outcome = *static_cast<Outcome*>(of);
  outcome.over = true;
  outcome.code = request == nullptr ? 0 : evhttp_request_get_response_code(request);
  event_base_loopbreak(outcome.base);
}

void OnInterrupt(evutil_socket_t, short, void* base) {
  event_base_loopbreak(static_cast<event_base*>(base));
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text) {
  const Uri uri(evhttp_uri_parse(std::string(text).c_str()));
  absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("is '", text, "', must be http://HOST[:PORT][/PATH]"));
  if (uri == nullptr || evhttp_uri_get_host(uri.get()) == nullptr) return wrong;
  const char* const scheme = evhttp_uri_get_scheme(uri.get());
  const int port = evhttp_uri_get_port(uri.get());
  Endpoint endpoint;
  absl::string_view host = evhttp_uri_get_host(uri.get());
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  endpoint.host = std::string(host);
  if (scheme == nullptr || absl::string_view(scheme) != "http" || host.empty() || port == 0 ||
      port > 65535 || evhttp_uri_get_userinfo(uri.get()) != nullptr ||
      evhttp_uri_get_query(uri.get()) != nullptr || evhttp_uri_get_fragment(uri.get()) != nullptr) {
    return wrong;
  }
  if (port > 0) endpoint.port = static_cast<uint16_t>(port);
  const absl::string_view path = evhttp_uri_get_path(uri.get());
  if (!path.empty() && path != "/") endpoint.path = std::string(path);
  return endpoint;
}

struct Poster::Parts {
  Base base;
  int interrupt = -1;
  Event on_interrupt;
};

Poster::Poster(Endpoint endpoint)
    : endpoint_(std::move(endpoint)), parts_(std::make_unique<Parts>()) {
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

absl::Status Poster::Post(const std::string& body, std::chrono::milliseconds most) {
  event_base* const base = parts_->base.get();
  if (base == nullptr) return absl::UnavailableError("no descriptors are left");
  Outcome outcome{base};
  const Connection connection(
      evhttp_connection_base_new(base, nullptr, endpoint_.host.c_str(), endpoint_.port));
  evhttp_request* const request = evhttp_request_new(OnAnswer, &outcome);
  if (connection == nullptr || request == nullptr) {
    if (request != nullptr) evhttp_request_free(request);
    return absl::UnavailableError("no memory is left");
  }
  evhttp_connection_set_max_headers_size(connection.get(), kMostHeaders);
  evhttp_connection_set_max_body_size(connection.get(), kMostBody);
  evkeyvalq* const headers = evhttp_request_get_output_headers(request);
  const bool brackets = absl::StrContains(endpoint_.host, ':');
  const std::string host =
      absl::StrCat(brackets ? "[" : "", endpoint_.host, brackets ? "]" : "", ":", endpoint_.port);
  evhttp_add_header(headers, "Host", host.c_str());
  evhttp_add_header(headers, "Content-Type", "application/x-protobuf");
  evhttp_add_header(headers, "User-Agent", "quantd");
  evhttp_add_header(headers, "Connection", "close");
  evbuffer_add(evhttp_request_get_output_buffer(request), body.data(), body.size());
  // The request is the connection's from now on, also when this fails.
  if (evhttp_make_request(connection.get(), request, EVHTTP_REQ_POST, endpoint_.path.c_str()) !=
      0) {
    return absl::UnavailableError(absl::StrCat("can't connect to ", host));
  }
  const timeval time = {most.count() / 1000, most.count() % 1000 * 1000};
  const Event timer(event_new(base, -1, 0, OnInterrupt, base));
  event_add(timer.get(), &time);
  event_base_dispatch(base);
  if (!outcome.over) return absl::UnavailableError(absl::StrCat(host, " does not answer in time"));
  if (outcome.code == 0) {
    return absl::UnavailableError(absl::StrCat(host, " can't be reached, or answers no HTTP"));
  }
  if (outcome.code / 100 == 2) return absl::OkStatus();
  const std::string text = absl::StrCat(host, " answers with status ", outcome.code);
  // What the protocol calls retryable.
  for (const int later : {429, 502, 503, 504}) {
    if (outcome.code == later) return absl::UnavailableError(text);
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace quantd::trace
