// A raw gRPC server to compare quantd with: the least that a server can do with the same bytes. A
// hand-written state machine over one completion queue; it never looks at requests, and its replies
// are buffers of a given size that nobody fills. It keeps freed memory as quantd does.
//
//   quantd_bench_echo PATH [BASE]
//
// Listens on a port of 127.0.0.1 and on the Unix socket PATH; writes PATH.json when it is ready.
// With the files BASE.crt and BASE.key the port has TLS; Unix sockets stay plain, as quantd's do.
// It has the methods of QuantizationService. DynamicQuantize and Stream reply with the number of
// bytes that Dequantize was last given for requests of that length (as text: "REQUEST REPLY").
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "quantd/v1/quantization.grpc.pb.h"
#include "server/process/malloc.h"

namespace {

using grpc::ByteBuffer;
using quantd::v1::QuantizationService;
using Service = QuantizationService::WithRawMethod_Dequantize<
    QuantizationService::WithRawMethod_DynamicQuantize<
        QuantizationService::WithRawMethod_Stream<QuantizationService::Service>>>;

// For the one polling thread.
std::vector<std::pair<size_t, size_t>> reply_bytes;  // newest first

ByteBuffer Reply(const ByteBuffer& request) {
  const size_t length = request.Length();
  for (const auto& [of, reply] : reply_bytes) {
    if (of != length) continue;
    const grpc::Slice slice(reply);
    return ByteBuffer(&slice, 1);
  }
  return ByteBuffer();
}

void SetReply(const ByteBuffer& request) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!request.Dump(&slices).ok()) return;
  for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  std::istringstream words(text);
  std::pair<size_t, size_t> pair;
  if (words >> pair.first >> pair.second) reply_bytes.insert(reply_bytes.begin(), pair);
}

struct Step {
  virtual ~Step() = default;
  virtual void Go(bool ok) = 0;
};

struct Unary : Step {
  Unary(Service& s, grpc::ServerCompletionQueue& q, bool set) : service(s), queue(q), sets(set) {
    if (sets) {
      service.RequestDequantize(&context, &request, &writer, &queue, &queue, this);
    } else {
      service.RequestDynamicQuantize(&context, &request, &writer, &queue, &queue, this);
    }
  }
  void Go(bool ok) override {
    if (finished || !ok) {
      delete this;
      return;
    }
    new Unary(service, queue, sets);
    finished = true;
    if (sets) {
      SetReply(request);
      request.Clear();
      writer.Finish(ByteBuffer(), grpc::Status::OK, this);
    } else {
      const ByteBuffer reply = Reply(request);
      request.Clear();
      writer.Finish(reply, grpc::Status::OK, this);
    }
  }
  Service& service;
  grpc::ServerCompletionQueue& queue;
  const bool sets;
  bool finished = false;
  grpc::ServerContext context;
  ByteBuffer request;
  grpc::ServerAsyncResponseWriter<ByteBuffer> writer{&context};
};

struct Stream : Step {
  enum class State { kArrive, kRead, kWrite, kFinish };
  Stream(Service& s, grpc::ServerCompletionQueue& q) : service(s), queue(q) {
    service.RequestStream(&context, &stream, &queue, &queue, this);
  }
  void Go(bool ok) override {
    switch (state) {
      case State::kArrive:
        if (!ok) break;
        new Stream(service, queue);
        state = State::kRead;
        stream.Read(&message, this);
        return;
      case State::kRead:
        if (!ok) {
          state = State::kFinish;
          stream.Finish(grpc::Status::OK, this);
          return;
        }
        reply = Reply(message);
        message.Clear();
        state = State::kWrite;
        stream.Write(reply, this);
        return;
      case State::kWrite:
        state = State::kRead;
        stream.Read(&message, this);
        return;
      case State::kFinish:
        break;
    }
    delete this;
  }
  Service& service;
  grpc::ServerCompletionQueue& queue;
  State state = State::kArrive;
  grpc::ServerContext context;
  ByteBuffer message, reply;
  grpc::ServerAsyncReaderWriter<ByteBuffer, ByteBuffer> stream{&context};
};

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<grpc::ServerCredentials> Tls(const std::string& base) {
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({Content(base + ".key"), Content(base + ".crt")});
  return grpc::SslServerCredentials(options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string path = argv[1];
  quantd::process::KeepFreedMemory();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0",
                           argc > 2 ? Tls(argv[2]) : grpc::InsecureServerCredentials(), &port);
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  Service service;
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 2;
  for (int i = 0; i < 64; ++i) {
    new Unary(service, *queue, false);
    new Stream(service, *queue);
  }
  new Unary(service, *queue, true);
  std::ofstream(path + ".json") << absl::StrCat("{\"grpc\": [\"127.0.0.1:", port,
                                                "\", \"unix:", path, "\"]}")
                                << std::endl;
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<Step*>(tag)->Go(ok);
  return 0;
}
