// The C++ client over real connections to gRPC servers in this process: TLS, retries, started calls,
// cancelling, servers that take little.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "certificate.h"
#include "fake_server.h"
#include "quantd/client/client.h"
#include "quantd/client/status.h"
#include "quantd/client/status_details.pb.h"

namespace quantd::client {
namespace {

using testing::HasSubstr;

// The service over FakeServer, which may refuse calls or keep them waiting.
class Service final : public v1::QuantizationService::Service {
 public:
  explicit Service(size_t message_bytes) : limit_(message_bytes), fake_(message_bytes) {}

  grpc::Status Quantize(grpc::ServerContext* context, const v1::QuantizeRequest* request,
                        v1::QuantizeResponse* response) override {
    return Answer(context, fake_.Quantize(*request), response);
  }
  grpc::Status Dequantize(grpc::ServerContext* context, const v1::DequantizeRequest* request,
                          v1::DequantizeResponse* response) override {
    return Answer(context, fake_.Dequantize(*request), response);
  }
  grpc::Status DynamicQuantize(grpc::ServerContext* context,
                               const v1::DynamicQuantizeRequest* request,
                               v1::DynamicQuantizeResponse* response) override {
    return Answer(context, fake_.DynamicQuantize(*request), response);
  }
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    ++asked;
    response->set_max_message_bytes(limit_);
    return grpc::Status::OK;
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
    folder_ =
        std::filesystem::temp_directory_path() / ("quantd-client-test-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    SetUp();
    std::filesystem::remove_all(folder_);
  }

  // Starts a server; its address.
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
  static std::shared_ptr<grpc::ServerCredentials> ServerTls(bool both_sides) {
    grpc::SslServerCredentialsOptions options(
        both_sides ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                   : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.pem_key_cert_pairs.push_back({kTestKey, kTestCertificate});
    options.pem_root_certs = kTestCertificate;
    return grpc::SslServerCredentials(options);
  }
  std::string File(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name) << content;
    return folder_ / name;
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

  std::filesystem::path folder_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ConnectionTest, AServerWithACertificateIsTrustedByItsSigner) {
  const std::string address = Serve(64 << 20, ServerTls(false));
  ClientOptions options;
  options.tls.ca_file = File("ca.pem", kTestCertificate);
  Client client(address, options);
  EXPECT_EQ(CallOf(client), absl::OkStatus());
  // By the environment alone, the address too.
  setenv("QUANTD_TLS_CA", options.tls.ca_file.c_str(), 1);
  setenv("QUANTD_ADDRESS", address.c_str(), 1);
  Client other;
  EXPECT_EQ(AsyncCallOf(other), absl::OkStatus());
}

TEST_F(ConnectionTest, BothSidesMayHaveCertificates) {
  const std::string address = Serve(64 << 20, ServerTls(true));
  ClientOptions options;
  options.tls.ca_file = File("ca.pem", kTestCertificate);
  Client stranger(address, options);
  EXPECT_TRUE(absl::IsUnavailable(CallOf(stranger)));
  options.tls.certificate_file = options.tls.ca_file;
  setenv("QUANTD_TLS_KEY", File("key.pem", kTestKey).c_str(), 1);
  Client known(address, options);
  EXPECT_EQ(CallOf(known), absl::OkStatus());
}

TEST_F(ConnectionTest, AServerInPlainTextIsRefusedAndItSaysWhy) {
  ClientOptions options;
  options.tls.ca_file = File("ca.pem", kTestCertificate);
  Client client(Serve(), options);
  for (const absl::Status& status : {CallOf(client), AsyncCallOf(client)}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("this client uses TLS"));
  }
  EXPECT_EQ(service_->calls, 0);
}

TEST_F(ConnectionTest, WrongFilesAreTheErrorOfEveryCall) {
  const std::string address = Serve();
  const auto message = [&](const TlsOptions& tls) {
    ClientOptions options;
    options.tls = tls;
    Client client(address, options);
    EXPECT_EQ(CallOf(client), AsyncCallOf(client));
    EXPECT_EQ(client.GetServerInfo().status(), CallOf(client));
    EXPECT_TRUE(absl::IsInvalidArgument(CallOf(client))) << CallOf(client);
    return std::string(CallOf(client).message());
  };
  EXPECT_THAT(message({"/nowhere/ca.pem", "", ""}),
              HasSubstr("ca_file: can't read /nowhere/ca.pem"));
  EXPECT_THAT(message({File("no.pem", "text"), "", ""}), HasSubstr("is no PEM file"));
  EXPECT_THAT(message({"", File("cert.pem", kTestCertificate), ""}), HasSubstr("needs both"));
  EXPECT_EQ(service_->calls, 0);
  Client nowhere("http://quantd");
  EXPECT_THAT(std::string(CallOf(nowhere).message()), HasSubstr("quantd speaks gRPC"));
}

TEST_F(ConnectionTest, ABusyServerIsAskedAgainWhenItSaysWhen) {
  Client client(Serve());
  service_->retry_after = absl::Milliseconds(20);
  for (const auto call : {CallOf, AsyncCallOf}) {
    service_->refuse = 2;
    service_->calls = 0;
    const absl::Time begin = absl::Now();
    EXPECT_EQ(call(client), absl::OkStatus());
    EXPECT_EQ(service_->calls, 3);
    EXPECT_GE(absl::Now() - begin, absl::Milliseconds(60));  // 20, and twice 20
  }
}

TEST_F(ConnectionTest, RetriesEnd) {
  const std::string address = Serve();
  ClientOptions once, brief;
  once.max_attempts = 1;
  brief.timeout = absl::Seconds(2);
  Client client(address), no_retries(address, once), in_a_hurry(address, brief);
  for (const auto call : {CallOf, AsyncCallOf}) {
    const auto calls = [&](Client& by) {
      service_->refuse = 100;
      service_->calls = 0;
      EXPECT_TRUE(absl::IsUnavailable(call(by)));
      return service_->calls.load();
    };
    service_->with_retry_info = true;
    service_->retry_after = absl::Milliseconds(1);
    EXPECT_EQ(calls(client), 5);
    EXPECT_EQ(calls(no_retries), 1);
    service_->retry_after = absl::Hours(1000);  // nobody waits for that
    EXPECT_EQ(calls(in_a_hurry), 1);
    service_->retry_after = -absl::Hours(1000);
    EXPECT_EQ(calls(client), 5);
    service_->with_retry_info = false;
    EXPECT_EQ(calls(client), 1);
  }
}

TEST_F(ConnectionTest, AServerThatTakesLittleGetsPieces) {
  for (const size_t limit : {size_t{1} << 20, size_t{20'000}}) {
    Client client(Serve(limit));
    std::vector<float> values(40'000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 101);
    const Tensor x = limit > 100'000 ? Large() : Tensor::Of<float>(values, {40'000});
    DynamicQuantizeOptions options;
    options.output_type = v1::DATA_TYPE_INT8;
    const auto result = client.DynamicQuantize(x, options);
    ASSERT_TRUE(result.ok()) << result.status();
    const auto back = client.Dequantize(*result);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->data.size(), x.data.size());
    EXPECT_LE(service_->asked, 2);
    EXPECT_GT(service_->calls, 4);
    // The one-call way says what the server says.
    ClientOptions whole;
    whole.split = false;
    server_->Shutdown();
    Client refused(Serve(limit), whole);
    EXPECT_TRUE(absl::IsResourceExhausted(refused.DynamicQuantize(x, options).status()));
    server_->Shutdown();
  }
}

TEST_F(ConnectionTest, ResultsRememberWhatTheyAreOf) {
  Client client(Serve());
  DynamicQuantizeOptions options;
  options.output_type = v1::DATA_TYPE_INT8;
  options.granularity.axis = 0;
  const Tensor x{v1::DATA_TYPE_FLOAT16, {2, 2}, std::string("\x00\x3c\x00\x40\x00\xbc\x00\x44", 8)};
  const auto result = client.DynamicQuantize(x, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->granularity.axis, 0);
  EXPECT_EQ(result->original_type, v1::DATA_TYPE_FLOAT16);
  const auto back = client.Dequantize(*result);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->data_type, v1::DATA_TYPE_FLOAT16);
  DequantizeOptions same;
  same.granularity = options.granularity;
  same.output_type = v1::DATA_TYPE_FLOAT16;
  const auto wanted = client.Dequantize(result->y, result->scale, result->zero_point, same);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  EXPECT_EQ(back->data, wanted->data);
  // What is asked for comes first; of INT32 it is the scale's type.
  DequantizeOptions wide;
  wide.output_type = v1::DATA_TYPE_FLOAT;
  EXPECT_EQ(client.Dequantize(*result, wide)->data_type, v1::DATA_TYPE_FLOAT);
  const auto whole = client.DynamicQuantize(Tensor::Of<int32_t>(std::vector<int32_t>{1, -7}, {2}));
  EXPECT_EQ(client.Dequantize(*whole)->data_type, v1::DATA_TYPE_FLOAT);
  // NVFP4's second scale.
  DynamicQuantizeOptions nvfp4;
  nvfp4.output_type = v1::DATA_TYPE_FLOAT4E2M1;
  nvfp4.scale_type = v1::DATA_TYPE_FLOAT8E4M3FN;
  nvfp4.granularity.block_size = 16;
  const auto small =
      client.DynamicQuantize(Tensor::Of<float>(std::vector<float>(32, 300.0f), {1, 32}), nvfp4);
  ASSERT_TRUE(small.ok()) << small.status();
  ASSERT_TRUE(small->tensor_scale.has_value());
  EXPECT_EQ(client.Dequantize(*small)->Values<float>()->front(), 300.0f);
  // Given scales, along axis 0 as well.
  QuantizeOptions given;
  given.granularity.axis = 0;
  const Tensor rows = Tensor::Of<float>(std::vector<float>{0.5f, 2}, {2});
  const auto quantized = client.Quantize(
      Tensor::Of<float>(std::vector<float>{1, 2, 4, 8, 16, 32}, {2, 3}), rows, {}, given);
  ASSERT_TRUE(quantized.ok()) << quantized.status();
  EXPECT_EQ(client.Dequantize(*quantized)->Values<float>().value(),
            (std::vector<float>{1, 2, 4, 8, 16, 32}));
}

TEST_F(ConnectionTest, AThousandCallsAtOnce) {
  Client client(Serve());
  std::mutex mutex;
  std::condition_variable all;
  int answered = 0, right = 0;
  for (int i = 0; i < 1000; ++i) {
    const float first = static_cast<float>(i);
    client.QuantizeAsync(Tensor::Of<float>(std::vector<float>{first, 3}, {2}), Tensor::Scalar(8.0f),
                         {}, {}, [&, i](const absl::StatusOr<Quantized>& result) {
                           const std::lock_guard<std::mutex> lock(mutex);
                           const int wanted = std::min(255, static_cast<int>(std::rint(i / 8.0)));
                           right += result.ok() &&
                                    static_cast<uint8_t>(result->y.data[0]) == wanted &&
                                    result->original_type == v1::DATA_TYPE_FLOAT;
                           if (++answered == 1000) all.notify_all();
                         });
  }
  std::unique_lock<std::mutex> lock(mutex);
  ASSERT_TRUE(all.wait_for(lock, std::chrono::seconds(60), [&] { return answered == 1000; }));
  EXPECT_EQ(right, 1000);
}

TEST_F(ConnectionTest, AStartedCallCanBeCancelled) {
  Client client(Serve(1 << 20));
  for (const int from : {0, 3}) {  // a small one, and one that is under way in pieces
    service_->calls = 0;
    service_->hang_from = from;
    std::promise<absl::Status> done;
    const AsyncCall call = client.DynamicQuantizeAsync(
        from == 0 ? Small() : Large(), {},
        [&](const absl::StatusOr<Quantized>& result) { done.set_value(result.status()); });
    while (service_->calls <= from) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    call.Cancel();
    call.Cancel();
    EXPECT_TRUE(absl::IsCancelled(done.get_future().get()));
    call.Cancel();  // after its end
  }
  // While it waits to try again, and before it began.
  service_->hang_from = 1 << 30;
  service_->retry_after = absl::Milliseconds(300);
  service_->refuse = 100;
  service_->calls = 0;
  std::promise<absl::Status> done;
  const AsyncCall call = client.DynamicQuantizeAsync(
      Small(), {},
      [&](const absl::StatusOr<Quantized>& result) { done.set_value(result.status()); });
  while (service_->calls == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  call.Cancel();
  EXPECT_TRUE(absl::IsCancelled(done.get_future().get()));
  EXPECT_LE(service_->calls, 2);
}

TEST_F(ConnectionTest, AStartedCallHasADeadline) {
  ClientOptions options;
  options.timeout = absl::Milliseconds(100);
  Client client(Serve(), options);
  service_->hang_from = 0;
  EXPECT_TRUE(absl::IsDeadlineExceeded(AsyncCallOf(client)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(CallOf(client)));
}

TEST_F(ConnectionTest, TheClientsEndWaitsForItsCallbacks) {
  const std::string address = Serve();
  for (int turn = 0; turn < 20; ++turn) {
    std::atomic<int> answered{0};
    {
      Client client(address);
      for (int i = 0; i < 20; ++i) {
        client.DynamicQuantizeAsync(Small(), {},
                                    [&](const absl::StatusOr<Quantized>&) { ++answered; });
      }
    }
    EXPECT_EQ(answered, 20);
  }
}

TEST_F(ConnectionTest, ACallbackMayStartTheNextCall) {
  Client client(Serve());
  std::promise<absl::Status> done;
  client.DynamicQuantizeAsync(Small(), {}, [&](absl::StatusOr<Quantized> first) {
    ASSERT_TRUE(first.ok()) << first.status();
    client.DequantizeAsync(
        first->y, first->scale, first->zero_point, {},
        [&](const absl::StatusOr<Tensor>& back) { done.set_value(back.status()); });
  });
  EXPECT_EQ(done.get_future().get(), absl::OkStatus());
}

TEST_F(ConnectionTest, AServerThatGoesAwayBetweenPiecesIsAnError) {
  Client client(Serve(1 << 20));
  service_->hang_from = 3;
  std::thread end([&] {
    while (service_->calls <= 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server_->Shutdown(std::chrono::system_clock::now());
  });
  const absl::Status status = client.DynamicQuantize(Large()).status();
  end.join();
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace quantd::client
