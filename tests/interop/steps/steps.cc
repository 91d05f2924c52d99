// The cases of README.md with gRPC's library for C++: steps PORT CA|- CASE. Prints a line and fails
// if something is wrong.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::system_clock;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
const std::string kName = "größe 測試 ☺ 😀";

void Require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  std::exit(1);
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::shared_ptr<grpc::Channel> Connect(const std::string& port, const std::string& ca) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetSslTargetNameOverride("localhost");
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (ca != "-") {
    std::ifstream file(ca);
    credentials = grpc::SslCredentials({{std::istreambuf_iterator<char>(file), {}}, "", ""});
  }
  return grpc::CreateCustomChannel("127.0.0.1:" + port, credentials, arguments);
}

struct Unary {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer answer;
  grpc::Status status;

  void Start(grpc::GenericStub& stub, const std::string& path, const grpc::ByteBuffer& request,
             grpc::CompletionQueue& queue) {
    context.set_deadline(Clock::now() + std::chrono::seconds(100));
    reader = stub.PrepareUnaryCall(&context, path, request, &queue);
    reader->StartCall();
    reader->Finish(&answer, &status, this);
  }
};

// Waits for the next event in the queue. Returns whether it is a success.
bool Next(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  Require(queue.Next(&tag, &ok), "something is next");
  return ok;
}

grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                  const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  Unary unary;
  unary.Start(stub, path, ToBuffer(request), queue);
  Next(queue);
  return unary.status;
}

void Check(const std::shared_ptr<grpc::Channel>& channel) {
  const grpc::Status status = Call(channel, kCheck, "");
  Require(status.ok(), status.error_message());
}

// A Watch: reads one message of it, and expects that it ends with this code.
void Watch(const std::shared_ptr<grpc::Channel>& channel, bool cancel, grpc::StatusCode code) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  if (!cancel) context.set_deadline(Clock::now() + std::chrono::milliseconds(300));
  const auto stream = stub.PrepareCall(&context, kWatch, &queue);
  stream->StartCall(nullptr);
  Require(Next(queue), "it starts");
  stream->WriteLast(ToBuffer(""), grpc::WriteOptions(), nullptr);
  Require(Next(queue), "it is sent");
  grpc::ByteBuffer message;
  stream->Read(&message, nullptr);
  Require(Next(queue), "a message comes");
  if (cancel) context.TryCancel();
  stream->Read(&message, nullptr);
  Require(!Next(queue), "no other message comes");
  grpc::Status status;
  stream->Finish(&status, nullptr);
  Next(queue);
  Require(status.error_code() == code, status.error_message());
}

std::string Field(int number, const std::string& payload) {
  return {static_cast<char>(number << 3 | 2) + std::string(1, static_cast<char>(payload.size())) +
          payload};
}

// For the interop server: 271,828 bytes get 314,159 in return.
void ConcurrentLargeUnary(const std::shared_ptr<grpc::Channel>& channel) {
  std::string request("\x10\xaf\x96\x13\x1a\xd8\xcb\x10\x12\xd4\xcb\x10", 12);
  request.append(271'828, '\0');
  const grpc::ByteBuffer bytes = ToBuffer(request);
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  std::vector<Unary> calls(1'000);
  for (Unary& call : calls) call.Start(stub, "/grpc.testing.TestService/UnaryCall", bytes, queue);
  for (size_t i = 0; i < calls.size(); ++i) Next(queue);
  for (const Unary& call : calls) {
    Require(call.status.ok(), call.status.error_message());
    const size_t size = call.answer.Length();
    Require(size > 314'159 && size < 314'200, std::to_string(size) + " bytes");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Require(argc == 4, "there are three arguments");
  const std::string port = argv[1], ca = argv[2], step = argv[3];
  const auto channel = Connect(port, ca);
  if (step == "deadline") {
    const auto began = Clock::now();
    Watch(channel, false, grpc::StatusCode::DEADLINE_EXCEEDED);
    Require(Clock::now() - began >= std::chrono::milliseconds(290), "it took its time");
  } else if (step == "cancel") {
    Watch(channel, true, grpc::StatusCode::CANCELLED);
    Check(channel);
  } else if (step == "unicode_status") {
    // A FLOAT tensor of 4 bytes.
    const std::string request = Field(1, "\x08\x01" + Field(6, Field(1, kName) + "\x18\x04"));
    const grpc::Status status =
        Call(channel, "/quantd.v1.QuantizationService/DynamicQuantize", request);
    Require(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT, status.error_message());
    Require(status.error_message().find(kName) != std::string::npos, status.error_message());
  } else if (step == "soak") {
    for (int i = 0; i < 10'000; ++i) Check(channel);
  } else if (step == "channels") {
    for (int i = 0; i < 1'000; ++i) Check(Connect(port, ca));
  } else if (step == "concurrent_large_unary") {
    ConcurrentLargeUnary(channel);
  } else {
    Require(false, "there is a step " + step);
  }
  return 0;
}
