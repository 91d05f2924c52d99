#include "server/services/parameters_service.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "quantd/v1/parameters.pb.h"
#include "server/errors/reason.h"
#include "server/rpc/call_metrics.h"
#include "server/rpc/disk_task.h"
#include "server/rpc/reservation.h"
#include "server/services/messages.h"
#include "server/stored_parameters/canonical.h"
#include "server/wire/convert.h"
#include "server/wire/decode.h"
#include "server/wire/encode.h"
#include "server/wire/writer.h"

namespace quantd::services {
namespace {

using stored_parameters::kMaxSetBytes;
using wire::Method;

// Everything that the work uses: an interrupted call leaves it to the thread that works.
struct Job {
  transport::Message request;
  admission::Permit permit;
  absl::StatusOr<memory::Piece> response;
};

absl::StatusOr<memory::Piece> Put(stored_parameters::Library& library,
                                  const transport::Message& request, memory::Pool& pool) {
  const wire::Split split = wire::SplitRequest(Method::kPutParameters, request.bytes());
  v1::PutParametersRequest message;
  if (absl::Status status = wire::Parse(split, message); !status.ok()) return status;
  if (absl::Status status = stored_parameters::CheckName(message.name(), "name"); !status.ok()) {
    return status;
  }
  const absl::StatusOr<std::string> bytes =
      stored_parameters::Encode(message.parameters(), split.raw);
  if (!bytes.ok()) {
    const bool has_field = !ErrorField(bytes.status()).empty();
    return has_field ? wire::Within("parameters", bytes.status())
                     : FieldError("parameters", bytes.status().message(), bytes.status().code());
  }
  absl::StatusOr<std::string> reference = library.Put(message.name(), *bytes);
  if (!reference.ok()) return reference.status();
  v1::PutParametersResponse response;
  response.set_reference(*std::move(reference));
  return wire::Serialize(response, pool);
}

absl::StatusOr<memory::Piece> Get(stored_parameters::Library& library,
                                  const transport::Message& request, memory::Pool& pool) {
  v1::GetParametersRequest message;
  if (absl::Status status = Parse(request, message); !status.ok()) return status;
  const absl::StatusOr<stored_parameters::SetPointer> set =
      library.Find(message.reference(), "reference");
  if (!set.ok()) return set.status();
  // The response is written around the set's bytes, which are an encoding of its parameters.
  using Response = v1::GetParametersResponse;
  const std::string& bytes = (*set)->bytes;
  std::string head;
  wire::AppendBytesField(Response::kReferenceFieldNumber, (*set)->reference, head);
  wire::AppendBytesHeader(Response::kParametersFieldNumber, bytes.size(), head);
  memory::Piece piece = wire::MakePiece(head.size() + bytes.size(), pool);
  if (piece.begin == nullptr) return piece;
  std::memcpy(piece.begin, head.data(), head.size());
  std::memcpy(piece.begin + head.size(), bytes.data(), bytes.size());
  return piece;
}

absl::StatusOr<memory::Piece> List(stored_parameters::Library& library,
                                   const transport::Message& request, memory::Pool& pool) {
  v1::ListParametersRequest message;
  if (absl::Status status = Parse(request, message); !status.ok()) return status;
  absl::StatusOr<std::vector<std::string>> references = library.List(message.prefix());
  if (!references.ok()) return references.status();
  v1::ListParametersResponse response;
  for (std::string& reference : *references) response.add_references(std::move(reference));
  return wire::Serialize(response, pool);
}

uint64_t PutBound(const transport::Message& request) {
  // Each byte of values becomes up to four bytes, twice; also the columns of a plan.
  return 10 * request.size +
         wire::DecodeMemoryBytes(
             wire::RestOf(Method::kPutParameters, request.bytes(), wire::kFewFields)) +
         std::min<uint64_t>(16 * request.size, kMaxSetBytes);
}

// A name, whose request the router limits to 12 KiB.
uint64_t NameBound(const transport::Message& request) {
  return (1 + wire::kDecodeFactor) * request.size;
}

uint64_t GetBound(const transport::Message& request) {
  return NameBound(request) + memory::Pool::Footprint(kMaxSetBytes + 1024);
}

uint64_t ListBound(const transport::Message& request) {
  // References have up to 200 bytes, and are stored twice.
  return NameBound(request) + 2 * 200 * stored_parameters::Library::kMostListed;
}

absl::Status MayServe(const rpc::Backend& backend) {
  if (backend.parameters != nullptr) return absl::OkStatus();
  return errors::WithReason(
      absl::FailedPreconditionError("this server stores no parameters (--parameters_dir)"),
      "NO_PARAMETERS_DIR");
}

}  // namespace

const ParametersMethod kPutParameters = {Method::kPutParameters, PutBound, Put};
const ParametersMethod kGetParameters = {Method::kGetParameters, GetBound, Get};
const ParametersMethod kListParameters = {Method::kListParameters, ListBound, List};

rpc::Call ServeParameters(rpc::Calls& /*calls*/, rpc::Backend& backend,
                          transport::ServerCall& stream, const ParametersMethod& of) {
  rpc::CallMetrics meter(backend.metrics, backend.tracer, stream, of.method);
  loop::Event read, admitted, done, written, finished;
  {
    rpc::Reservation reservation(backend, stream);
    rpc::DiskTask disk_task(backend, stream);
    auto job = std::make_shared<Job>();
    stream.Read(job->request, read);
    const bool has_request = co_await read;
    if (has_request) meter.Received();
    absl::Status status = has_request ? MayServe(backend) : rpc::NoRequestStatus(stream);
    if (status.ok()) status = reservation.AskForMemory(of.bound(job->request), 0, admitted);
    if (status.ok()) {
      const bool granted = co_await admitted;
      if (!granted) status = rpc::InterruptedStatus(backend, stream);
    }
    stream.Taken();
    if (status.ok()) {
      job->permit = std::move(reservation.permit());
      const auto priority = stored_parameters::Worker::kLast;
      status = disk_task.Start(
          priority,
          [job, response = of.response, library = backend.parameters, pool = &backend.pool] {
            try {
              job->response = response(*library, job->request, *pool);
              if (job->response.ok() && job->response->begin == nullptr) throw std::bad_alloc();
            } catch (const std::bad_alloc&) {
              job->response = rpc::NoMemory();
            }
            job->request = transport::Message();
          },
          done);
    }
    if (status.ok()) {
      const bool is_done = co_await done;
      status = is_done ? job->response.status() : disk_task.NotDone();
    }
    // Frees its memory and its permit for others, unless the thread is using it.
    if (!status.ok()) job.reset();
    if (status.ok()) {
      job->permit.Shrink(memory::Pool::Footprint(job->response->size));
      stream.Write(*std::move(job->response), written);
    } else {
      written.Complete(false);
    }
    stream.Finish(meter.End(status), finished);
    co_await written;
    const bool sent = co_await finished;
    if (sent && status.ok()) meter.Sent();
    meter.Finish();
  }  // the permit is released
  stream.End();
}

}  // namespace quantd::services
