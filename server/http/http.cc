// Makes the pages, and runs the thread that serves them. See http.h.
#include "server/http/http.h"

#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/connections.h"
#include "server/http/request_reader.h"
#include "server/http/response.h"
#include "server/net/listen.h"

namespace quantd::http {
namespace {

// "Basic " and base64 of USER:TOKEN, as browsers send it, as the "Bearer TOKEN" of programs.
std::string Bearer(const std::string& authorization) {
  constexpr absl::string_view kBasic = "basic ";
  std::string pair;
  if (!absl::StartsWithIgnoreCase(authorization, kBasic)) return authorization;
  if (!absl::Base64Unescape(authorization.substr(kBasic.size()), &pair)) return "";
  return absl::StrCat("Bearer ", pair.substr(pair.find(':') + 1));
}

// 200, or the status with which a request for figures is refused.
int MayRead(const HttpAccess& access, const RequestReader& request, bool has_certificate) {
  if (access.certificates != nullptr && access.certificates->wants_client_certificates() &&
      !has_certificate) {
    return 403;
  }
  const bool good = access.tokens == nullptr ||
                    access.tokens->Check(Bearer(request.authorization()), "request").ok();
  return good ? 200 : 401;
}

std::string AnswerTo(const HttpPages& pages, const HttpAccess& access, const RequestReader& request,
                     bool has_certificate) {
  const bool head = request.head();
  if (request.status() != 200) return ErrorResponse(request.status(), head);
  const bool page = request.path() == "/" && pages.status_page != nullptr;
  const bool json = request.path() == "/status.json" && pages.status_json != nullptr;
  if (page || json || request.path() == "/metrics") {
    const int may = MayRead(access, request, has_certificate);
    if (may != 200) return ErrorResponse(may, head);
    if (page) return Response(200, kHtml, pages.status_page(), head, pages.status_policy);
    if (json) return Response(200, kJson, pages.status_json(), head);
    return Response(200, kPrometheusText, pages.metrics(), head);
  }
  if (request.path() == "/livez") {
    return pages.live() ? Response(200, kPlainText, "ok\n", head)
                        : Response(503, kPlainText, "not live\n", head);
  }
  if (request.path() == "/readyz") {
    return pages.ready() ? Response(200, kPlainText, "ok\n", head)
                         : Response(503, kPlainText, "not serving\n", head);
  }
  return ErrorResponse(404, head);
}

}  // namespace

class HttpServer::Thread {
 public:
  Thread(UniqueFd listener, HttpPages pages, const HttpLimits& limits, const HttpAccess& access)
      : pages_(std::move(pages)),
        access_(access),
        connections_(std::move(listener), limits, access,
                     [this](const RequestReader& request, bool has_certificate) {
                       return AnswerTo(pages_, access_, request, has_certificate);
                     }) {}
  ~Thread() {
    if (!thread_.joinable()) return;
    connections_.Stop();
    thread_.join();
  }
  absl::Status Start() {
    if (absl::Status status = connections_.Open(); !status.ok()) return status;
    thread_ = std::thread([this] { connections_.Serve(); });
    return absl::OkStatus();
  }

 private:
  const HttpPages pages_;
  const HttpAccess access_;
  Connections connections_;
  std::thread thread_;
};

HttpServer::HttpServer(std::string address, std::string note, std::unique_ptr<Thread> thread)
    : address_(std::move(address)), note_(std::move(note)), thread_(std::move(thread)) {}

HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(absl::string_view address,
                                                              HttpPages pages,
                                                              const HttpLimits& limits,
                                                              const HttpAccess& access) {
  absl::StatusOr<net::Listening> listening = net::Listen(address, "--http_listen");
  if (!listening.ok()) return listening.status();
  // If a name has several addresses, the first one that the machine has.
  UniqueFd listener(listening->listeners.front().Release());
  auto thread = std::make_unique<Thread>(std::move(listener), std::move(pages), limits, access);
  if (absl::Status status = thread->Start(); !status.ok()) return status;
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(listening->address), std::move(listening->note), std::move(thread)));
}

}  // namespace quantd::http
