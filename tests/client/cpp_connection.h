// gRPC servers in the test's process, for the C++ client.
#ifndef QUANTD_TESTS_CLIENT_CPP_CONNECTION_H_
#define QUANTD_TESTS_CLIENT_CPP_CONNECTION_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fake_server.h"
#include "quantd/client/client.h"
#include "quantd/client/status_details.pb.h"

namespace quantd::client {

// The service over FakeServer, which may refuse calls or keep them waiting.
class Service final : public v1::QuantizationService::Service {
 public:
  explicit Service(size_t message_bytes) : limit_(message_bytes), fake_(message_bytes) {}

  grpc::Status Quantize(grpc::ServerContext* context, const v1::QuantizeRequest* request,
                        v1::QuantizeResponse* response) override {
    return Answer(context, fake_.Answer(*request), response);
  }
  grpc::Status Dequantize(grpc::ServerContext* context, const v1::DequantizeRequest* request,
                          v1::DequantizeResponse* response) override {
    return Answer(context, fake_.Answer(*request), response);
  }
  grpc::Status DynamicQuantize(grpc::ServerContext* context,
                               const v1::DynamicQuantizeRequest* request,
                               v1::DynamicQuantizeResponse* response) override {
    return Answer(context, fake_.Answer(*request), response);
  }
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    ++asked;
    response->set_max_message_bytes(limit_);
    return grpc::Status::OK;
  }

  void WaitForCalls(int count) const {
    for (int now = calls; now < count; now = calls) calls.wait(now);
  }

  std::atomic<int> calls{0}, asked{0};
  std::atomic<int> refuse{0};           // how many calls are still refused,
  absl::Duration retry_after;           // with this in RetryInfo,
  bool with_retry_info = true;          // or without one
  std::atomic<int> hang_from{1 << 30};  // from this call on, calls wait until they are cancelled

 private:
  template <typename Response>
  grpc::Status Answer(grpc::ServerContext* context, absl::StatusOr<Response> answer,
                      Response* response) {
    const int call = calls++;
    calls.notify_all();
    while (call >= hang_from && !context->IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (refuse > 0) {
      --refuse;
      internal::RetryInfo retry;
      retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(retry_after));
      retry.mutable_retry_delay()->set_nanos(
          static_cast<int32_t>(absl::ToInt64Nanoseconds(retry_after) % 1'000'000'000));
      internal::Status details;
      if (with_retry_info) {
        auto* const detail = details.add_details();
        detail->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
        detail->set_value(retry.SerializeAsString());
      }
      return {grpc::StatusCode::UNAVAILABLE, "busy", details.SerializeAsString()};
    }
    if (!answer.ok()) {
      return {static_cast<grpc::StatusCode>(answer.status().code()),
              std::string(answer.status().message())};
    }
    *response = *std::move(answer);
    return grpc::Status::OK;
  }

  const size_t limit_;
  FakeServer fake_;
};

class ConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"QUANTD_ADDRESS", "QUANTD_TLS_CA", "QUANTD_TLS_CERT", "QUANTD_TLS_KEY"}) {
      unsetenv(name);
    }
  }
  void TearDown() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    SetUp();
  }

  // Starts a server and returns its address.
  std::string Serve(
      size_t message_bytes = 64 << 20,
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials()) {
    service_ = std::make_unique<Service>(message_bytes);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", std::move(credentials), &port);
    builder.RegisterService(service_.get());
    builder.SetMaxReceiveMessageSize(-1);
    server_ = builder.BuildAndStart();
    return "127.0.0.1:" + std::to_string(port);
  }
  static absl::Status CallOf(Client& client) { return client.DynamicQuantize(Small()).status(); }
  static absl::Status AsyncCallOf(Client& client) {
    std::promise<absl::Status> done;
    client.DynamicQuantizeAsync(Small(), {}, [&](const absl::StatusOr<Quantized>& result) {
      done.set_value(result.status());
    });
    return done.get_future().get();
  }
  static Tensor Small() { return Tensor::Of<float>(std::vector<float>{-1, 0, 2}, {3}); }
  static Tensor Large() {
    std::vector<float> values(1'000'000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1009) - 300;
    return Tensor::Of<float>(values, {1000, 1000});
  }
  // The rows of Large have scales of their own, so that it can be sent in pieces.
  static DynamicQuantizeOptions ByRow() {
    DynamicQuantizeOptions options;
    options.granularity.axis = 0;
    return options;
  }

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace quantd::client

#endif  // QUANTD_TESTS_CLIENT_CPP_CONNECTION_H_
