// The C++ client over real connections: TLS, retries, results that remember, servers that accept
// only small messages.
#include "cpp_connection.h"

#include <gmock/gmock.h>

#include <fstream>

#include "certificate.h"

namespace quantd::client {
namespace {

using testing::HasSubstr;

std::string CaFile() {
  const std::string path = testing::TempDir() + "/quantd-client-ca.pem";
  std::ofstream(path) << kTestCertificate;
  return path;
}

TEST_F(ConnectionTest, AServerWithACertificateIsTrustedByItsSigner) {
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({kTestKey, kTestCertificate});
  const std::string address = Serve(64 << 20, grpc::SslServerCredentials(tls));
  ClientOptions options;
  options.tls.ca_file = CaFile();
  Client client(address, options);
  EXPECT_EQ(CallOf(client), absl::OkStatus());
  // With the environment alone, which also gives the address.
  setenv("QUANTD_TLS_CA", options.tls.ca_file.c_str(), 1);
  setenv("QUANTD_ADDRESS", address.c_str(), 1);
  Client other;
  EXPECT_EQ(AsyncCallOf(other), absl::OkStatus());
}

TEST_F(ConnectionTest, AServerInPlainTextIsRefusedAndItSaysWhy) {
  ClientOptions options;
  options.tls.ca_file = CaFile();
  Client client(Serve(), options);
  for (const absl::Status& status : {CallOf(client), AsyncCallOf(client)}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("this client uses TLS"));
  }
  EXPECT_EQ(service_->calls, 0);
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

TEST_F(ConnectionTest, AServerThatComesBackCostsNoCall) {
  const std::string address = Serve();
  ClientOptions options;
  options.timeout = absl::Seconds(30);
  Client client(address, options);
  for (const auto call : {CallOf, AsyncCallOf}) {
    EXPECT_EQ(call(client), absl::OkStatus());
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      grpc::ServerBuilder builder;
      builder.AddListeningPort(address, grpc::InsecureServerCredentials());
      builder.RegisterService(service_.get());
      server_ = builder.BuildAndStart();
    });
    const absl::Time begin = absl::Now();
    EXPECT_EQ(call(client), absl::OkStatus());
    EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
    later.join();
  }
}

TEST_F(ConnectionTest, RetriesEnd) {
  const std::string address = Serve();
  ClientOptions once, brief;
  once.max_attempts = 1;
  brief.timeout = absl::Seconds(2);
  Client client(address), no_retries(address, once), in_a_hurry(address, brief);
  for (const auto call : {CallOf, AsyncCallOf}) {
    const auto calls = [&](Client& by, bool ends = false) {
      service_->refuse = 20;
      service_->calls = 0;
      const absl::Status status = call(by);
      EXPECT_TRUE(ends ? status.ok() : absl::IsUnavailable(status)) << status;
      return service_->calls.load();
    };
    // The server says that it has processed nothing: until it does.
    service_->with_retry_info = true;
    service_->retry_after = absl::Milliseconds(1);
    EXPECT_EQ(calls(client, true), 21);
    EXPECT_EQ(calls(no_retries), 1);
    service_->retry_after = absl::Hours(1000);  // no client waits that long
    EXPECT_EQ(calls(in_a_hurry), 1);
    service_->retry_after = -absl::Hours(1000);
    EXPECT_EQ(calls(client, true), 21);
    // Without RetryInfo the client chooses the waiting times itself.
    service_->with_retry_info = false;
    EXPECT_EQ(calls(client), 5);
    EXPECT_EQ(calls(no_retries), 1);
  }
}

TEST_F(ConnectionTest, AServerThatTakesLittleGetsPieces) {
  for (const size_t limit : {size_t{1} << 20, size_t{20'000}}) {
    Client client(Serve(limit));
    std::vector<float> values(40'000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 101);
    const Tensor x = limit > 100'000 ? Large() : Tensor::Of<float>(values, {40, 1000});
    DynamicQuantizeOptions options = ByRow();
    options.output_type = v1::DATA_TYPE_INT8;
    const auto result = client.DynamicQuantize(x, options);
    ASSERT_TRUE(result.ok()) << result.status();
    const auto back = client.Dequantize(*result);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->data.size(), x.data.size());
    EXPECT_LE(service_->asked, 2);
    EXPECT_GT(service_->calls, 4);
    // Without splitting, the server's error is returned.
    ClientOptions whole;
    whole.split = false;
    server_->Shutdown();
    Client refused(Serve(limit), whole);
    EXPECT_TRUE(absl::IsResourceExhausted(refused.DynamicQuantize(x, options).status()));
    server_->Shutdown();
  }
}

TEST_F(ConnectionTest, DequantizeOfAResultKnowsItsTypeAndGranularity) {
  Client client(Serve());
  std::vector<int32_t> values(32);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i) - 16;
  const Tensor halves{
      v1::DATA_TYPE_FLOAT16, {2, 2}, std::string("\x00\x3c\x00\x40\x00\xbc\x00\x44", 8)};
  const Tensor integers = Tensor::Of<int32_t>(values, {1, 32});
  const Tensor floats = Tensor::Of<float>(std::vector<float>(32, 300.0f), {1, 32});
  struct Row {
    Tensor x;
    v1::DataType output_type, scale_type;
    Granularity granularity;
    v1::DataType back;
  };
  const Row rows[] = {
      {halves, v1::DATA_TYPE_INT8, v1::DATA_TYPE_UNSPECIFIED, {0, 0, {}}, v1::DATA_TYPE_FLOAT16},
      {integers, v1::DATA_TYPE_INT8, v1::DATA_TYPE_UNSPECIFIED, {}, v1::DATA_TYPE_FLOAT},
      {integers, v1::DATA_TYPE_INT8, v1::DATA_TYPE_FLOAT16, {}, v1::DATA_TYPE_FLOAT16},
      // This scale is of no type that y may have.
      {integers, v1::DATA_TYPE_INT8, v1::DATA_TYPE_FLOAT8E8M0, {{}, 32, {}}, v1::DATA_TYPE_FLOAT},
      // NVFP4 has a second scale.
      {floats,
       v1::DATA_TYPE_FLOAT4E2M1,
       v1::DATA_TYPE_FLOAT8E4M3FN,
       {{}, 16, {}},
       v1::DATA_TYPE_FLOAT},
  };
  for (const Row& row : rows) {
    DynamicQuantizeOptions options;
    options.output_type = row.output_type;
    options.scale_type = row.scale_type;
    options.granularity = row.granularity;
    const auto result = client.DynamicQuantize(row.x, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->original_type, row.x.data_type);
    const auto back = client.Dequantize(*result);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->data_type, row.back);
    DequantizeOptions same;
    same.granularity = row.granularity;
    same.output_type = row.back;
    same.tensor_scale = result->tensor_scale;
    const auto wanted = client.Dequantize(result->y, result->scale, result->zero_point, same);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    EXPECT_EQ(back->data, wanted->data);
    DequantizeOptions asked;  // the requested type comes first
    asked.output_type = v1::DATA_TYPE_BFLOAT16;
    EXPECT_EQ(client.Dequantize(*result, asked)->data_type, v1::DATA_TYPE_BFLOAT16);
  }
  // Given scales.
  QuantizeOptions given;
  given.granularity.axis = 0;
  const std::vector<float> six = {1, 2, 4, 8, 16, 32};
  const auto quantized =
      client.Quantize(Tensor::Of<float>(six, {2, 3}),
                      Tensor::Of<float>(std::vector<float>{0.5f, 2}, {2}), {}, given);
  ASSERT_TRUE(quantized.ok()) << quantized.status();
  EXPECT_EQ(client.Dequantize(*quantized)->Values<float>().value(), six);
}

}  // namespace
}  // namespace quantd::client
