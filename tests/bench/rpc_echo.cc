// A raw gRPC server to compare quantd with: the least that a server can do with the same bytes. A
// hand-written state machine over one completion queue; requests are never looked at, replies are
// buffers of a given size that nobody fills. It keeps freed memory as quantd does.
//
//   rpc_echo READY_FILE ADDRESS...
//
// Answers the methods of QuantizationService: DynamicQuantize and Stream with a reply of as many
// bytes as Dequantize was last told (as text in its request).
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "quantd/v1/quantization.grpc.pb.h"
#include "server/lifecycle/memory.h"

namespace {

using grpc::ByteBuffer;
using quantd::v1::QuantizationService;
using Service = QuantizationService::WithRawMethod_Dequantize<
    QuantizationService::WithRawMethod_DynamicQuantize<
        QuantizationService::WithRawMethod_Stream<QuantizationService::Service>>>;

size_t reply_bytes = 0;  // of the one polling thread

ByteBuffer Reply() {
  const grpc::Slice slice(reply_bytes);
  return ByteBuffer(&slice, 1);
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
      std::vector<grpc::Slice> slices;
      request.Dump(&slices);
      std::string text;
      for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
      if (!absl::SimpleAtoi(text, &reply_bytes)) reply_bytes = 0;
      request.Clear();
      writer.Finish(ByteBuffer(), grpc::Status::OK, this);
    } else {
      request.Clear();
      writer.Finish(Reply(), grpc::Status::OK, this);
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
        message.Clear();
        state = State::kWrite;
        stream.Write(Reply(), this);
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
  ByteBuffer message;
  grpc::ServerAsyncReaderWriter<ByteBuffer, ByteBuffer> stream{&context};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  quantd::lifecycle::KeepFreedMemory();
  grpc::ServerBuilder builder;
  std::vector<int> ports(argc);
  for (int i = 2; i < argc; ++i) {
    builder.AddListeningPort(argv[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
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
  std::vector<std::string> addresses;
  for (int i = 2; i < argc; ++i) {
    addresses.push_back(absl::StartsWith(argv[i], "unix:")
                            ? absl::StrCat("\"", argv[i], "\"")
                            : absl::StrCat("\"127.0.0.1:", ports[i], "\""));
  }
  std::ofstream(argv[1]) << "{\"grpc\": [" << absl::StrJoin(addresses, ", ") << "]}" << std::endl;
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<Step*>(tag)->Go(ok);
  return 0;
}
