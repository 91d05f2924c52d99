#include "server/rpc/one_response.h"

#include <optional>
#include <utility>

#include "server/rpc/call_metrics.h"
#include "server/wire/status_details.h"

namespace quantd::rpc {

Call ServeOneResponse(Calls& /*calls*/, const Backend& backend, transport::ServerCall& stream,
                      const Response& response, const wire::Method* method) {
  std::optional<CallMetrics> meter;
  if (method != nullptr) meter.emplace(backend.metrics, backend.tracer, stream, *method);
  loop::Event read, written, finished;
  transport::Message request;
  stream.Read(request, read);
  const bool has_request = co_await read;
  absl::StatusOr<memory::Piece> piece = NoRequestStatus(stream);
  if (has_request) {
    if (meter.has_value()) meter->Received();
    piece = response(request);
  }
  const absl::Status status = piece.status();
  if (status.ok()) {
    stream.Write(*std::move(piece), written);
  } else {
    written.Complete(false);
  }
  stream.Finish(meter.has_value() ? meter->End(status) : wire::ToCallStatus(status), finished);
  co_await written;
  const bool sent = co_await finished;
  if (meter.has_value()) {
    if (sent && status.ok()) meter->Sent();
    meter->Finish();
  }
  stream.End();
}

}  // namespace quantd::rpc
