// See http.h.
#include "server/lifecycle/http.h"

#include <httplib.h>
#include <sys/socket.h>

#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quantd::lifecycle {

struct HttpServer::State {
  httplib::Server server;
  HttpPages pages;
  std::thread thread;
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() {
  state_->server.stop();
  if (state_->thread.joinable()) state_->thread.join();
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(absl::string_view address,
                                                              HttpPages pages) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not HOST:PORT"));
  }
  std::string host(address.substr(0, colon));
  const std::string host_in_url = host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);  // IPv6
  }

  auto state = std::make_unique<State>();
  state->pages = std::move(pages);
  httplib::Server& server = state->server;
  // The library's default also sets SO_REUSEPORT, with which a busy port looks free.
  server.set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  // A connection takes a thread for as long as it lives: one request each, and no patience.
  server.new_task_queue = [] { return new httplib::ThreadPool(4); };
  server.set_keep_alive_max_count(1);
  server.set_read_timeout(2);
  server.set_write_timeout(5);
  server.set_payload_max_length(1024);

  const HttpPages& page = state->pages;
  server.Get("/metrics", [&page](const httplib::Request&, httplib::Response& response) {
    response.set_content(page.metrics(), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/livez", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", "text/plain");
  });
  server.Get("/readyz", [&page](const httplib::Request&, httplib::Response& response) {
    const bool ready = page.ready();
    response.status = ready ? 200 : 503;
    response.set_content(ready ? "ok\n" : "not serving\n", "text/plain");
  });

  if (port == 0) {
    port = server.bind_to_any_port(host);
    if (port < 0) port = 0;
  } else if (!server.bind_to_port(host, port)) {
    port = 0;
  }
  if (port == 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address, ": in use, or no address of this machine (--http_listen)"));
  }
  std::unique_ptr<HttpServer> http(new HttpServer(std::move(state)));
  http->address_ = absl::StrCat(host_in_url, ":", port);
  http->state_->thread = std::thread([&server] { server.listen_after_bind(); });
  // stop() before the thread listens would be lost.
  while (!server.is_running()) std::this_thread::yield();
  return http;
}

}  // namespace quantd::lifecycle
