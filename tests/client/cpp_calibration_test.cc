// The C++ client's Calibrate over a real connection: order and cuts, errors, dropped calls.
#include <gmock/gmock.h>

#include <thread>

#include "cpp_connection.h"
#include "quantd/calibration.h"

namespace quantd::client {
namespace {

using testing::HasSubstr;

// The call, implemented with the core; it records what its client does.
class CalibrationService final : public v1::QuantizationService::Service {
 public:
  grpc::Status Calibrate(grpc::ServerContext* context,
                         grpc::ServerReader<v1::CalibrateRequest>* reader,
                         v1::CalibrateResponse* response) override {
    quantd::CalibrationOptions options;
    options.method = CalibrationMethod::kPercentile;
    std::optional<quantd::Calibrator> calibrator;
    v1::CalibrateRequest request;
    const Executor executor(1);
    while (reader->Read(&request)) {
      ++messages;
      largest = std::max<size_t>(largest, request.ByteSizeLong());
      if (!calibrator.has_value()) {
        if (request.options().has_axis()) options.axis = request.options().axis();
        if (request.options().method() == v1::CALIBRATION_METHOD_MIN_MAX) {
          options.method = CalibrationMethod::kMinMax;
        }
        calibrator = *quantd::Calibrator::Create(options);
      } else if (request.has_options()) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "options twice"};
      }
      absl::Status status;
      if (request.has_x()) status = calibrator->Add(View(request.x()), executor, Never);
      if (status.ok() && !request.state().empty()) {
        status = calibrator->Merge(
            {reinterpret_cast<const uint8_t*>(request.state().data()), request.state().size()});
      }
      if (!status.ok()) {
        return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
      }
    }
    cancelled = context->IsCancelled();
    if (!calibrator.has_value()) return {grpc::StatusCode::INVALID_ARGUMENT, "no message"};
    const absl::StatusOr<quantd::Calibration> result = calibrator->Result(executor, Never);
    if (!result.ok()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, std::string(result.status().message())};
    }
    Set(result->shape, result->scale, response->mutable_scale());
    Set(result->range_shape, result->range, response->mutable_range());
    response->mutable_zero_point()->set_data_type(v1::DATA_TYPE_UINT8);
    response->set_elements(result->elements);
    response->set_state(calibrator->State());
    return grpc::Status::OK;
  }
  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    asked = true;
    while (says_nothing && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    if (refuses) return {grpc::StatusCode::PERMISSION_DENIED, "not you"};
    response->set_max_message_bytes(20'000);
    return grpc::Status::OK;
  }

  std::atomic<int> messages{0};
  std::atomic<size_t> largest{0};
  std::atomic<bool> cancelled{false};
  // GetServerInfo: whether it was called, whether it leaves out the limit, or fails.
  std::atomic<bool> asked{false}, says_nothing{false}, refuses{false};

 private:
  static bool Never() { return false; }
  static TensorView View(const v1::Tensor& tensor) {
    const std::string& bytes = tensor.raw_data();
    return {static_cast<DataType>(tensor.data_type()),
            Shape(tensor.shape().begin(), tensor.shape().end()),
            {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}};
  }
  static void Set(const Shape& shape, const std::vector<float>& values, v1::Tensor* to) {
    to->set_data_type(v1::DATA_TYPE_FLOAT);
    to->mutable_shape()->Add(shape.begin(), shape.end());
    to->set_raw_data(values.data(), values.size() * sizeof(float));
  }
};

class CalibrationTest : public testing::Test {
 protected:
  CalibrationTest() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~CalibrationTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  static Tensor Values(std::vector<int64_t> shape) {
    size_t count = 1;
    for (const int64_t dimension : shape) count *= static_cast<size_t>(dimension);
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7919 % 10007) - 5000;
    return Tensor::Of<float>(values, std::move(shape));
  }

  CalibrationService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(CalibrationTest, LargeTensorsGoInPiecesAndChangeNothing) {
  Client client(address_);
  for (const std::optional<int64_t> axis : {std::optional<int64_t>(), std::optional<int64_t>(1)}) {
    CalibrationOptions options;
    options.axis = axis;
    options.return_state = true;
    const Tensor x = Values({60, 5, 100});
    Calibration whole = client.Calibrate(options);
    service_.messages = 0;
    ASSERT_EQ(whole.Add(x), absl::OkStatus());
    const absl::StatusOr<Calibrated> result = whole.Finish();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GT(service_.messages, 5);
    EXPECT_LE(service_.largest, 20'000u);
    EXPECT_EQ(result->elements, 30'000u);
    EXPECT_EQ(result->scale.Values<float>()->size(), axis.has_value() ? 5u : 1u);
    EXPECT_TRUE(result->zero_point.has_value());

    // Cut at another place, with the state of one part added to the other.
    Calibration half = client.Calibrate(options);
    Calibration other = client.Calibrate(options);
    const size_t middle = 4 * 25 * 500;
    ASSERT_EQ(half.Add(x.data_type, {25, 5, 100}, absl::string_view(x.data).substr(0, middle)),
              absl::OkStatus());
    ASSERT_EQ(other.Add(x.data_type, {35, 5, 100}, absl::string_view(x.data).substr(middle)),
              absl::OkStatus());
    const absl::StatusOr<Calibrated> first = half.Finish();
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_EQ(other.AddState(first->state), absl::OkStatus());
    const absl::StatusOr<Calibrated> both = other.Finish();
    ASSERT_TRUE(both.ok()) << both.status();
    EXPECT_EQ(both->state, result->state);
    EXPECT_EQ(both->scale.data, result->scale.data);
    EXPECT_EQ(both->range.data, result->range.data);
  }
}

TEST_F(CalibrationTest, WhatTheServerHasAgainstATensorComesNoLaterThanFinish) {
  Client client(address_);
  Calibration calibration = client.Calibrate();
  absl::Status status = calibration.Add(Tensor::Of<float>(std::vector<float>{1, NAN}, {2}));
  // The error arrives while other messages are sent, and is then returned each time.
  for (int i = 0; i < 100'000 && status.ok(); ++i) status = calibration.Add(Values({100}));
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("x[1] is nan"));
  EXPECT_EQ(calibration.Add(Values({1})), status);
  EXPECT_EQ(calibration.AddState("x"), status);
  EXPECT_EQ(calibration.Finish().status(), status);

  Calibration late = client.Calibrate();
  EXPECT_EQ(late.Add(Tensor::Of<float>(std::vector<float>{NAN}, {1})), absl::OkStatus());
  EXPECT_EQ(late.Finish().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(late.Finish().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CalibrationTest, WithoutAnythingItIsTheServersToSay) {
  Client client(address_);
  Calibration empty = client.Calibrate();
  EXPECT_THAT(std::string(empty.Finish().status().message()), HasSubstr("x is missing"));
  EXPECT_EQ(service_.messages, 1);  // the options
}

TEST_F(CalibrationTest, IsFinishedOnce) {
  Client client(address_);
  Calibration calibration = client.Calibrate();
  ASSERT_EQ(calibration.Add(Values({3})), absl::OkStatus());
  ASSERT_TRUE(calibration.Finish().ok());
  EXPECT_EQ(calibration.Finish().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(calibration.Add(Values({3})).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CalibrationTest, IsCancelledByCancelAndByBeingDropped) {
  Client client(address_);
  Calibration calibration = client.Calibrate();
  ASSERT_EQ(calibration.Add(Values({3})), absl::OkStatus());
  std::thread canceller([&] { calibration.Cancel(); });
  canceller.join();
  EXPECT_EQ(calibration.Finish().status().code(), absl::StatusCode::kCancelled);
  for (int i = 0; i < 500 && !service_.cancelled; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_TRUE(service_.cancelled);

  service_.cancelled = false;
  {
    Calibration dropped = client.Calibrate();
    ASSERT_EQ(dropped.Add(Values({3})), absl::OkStatus());
    dropped = client.Calibrate();  // a call that has sent nothing
  }
  for (int i = 0; i < 500 && !service_.cancelled; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_TRUE(service_.cancelled);
}

TEST_F(CalibrationTest, HasADeadlineForAllOfIt) {
  Client client(address_);
  CalibrationOptions options;
  options.timeout = absl::Milliseconds(50);
  Calibration calibration = client.Calibrate(options);
  absl::SleepFor(absl::Milliseconds(200));
  absl::Status status = calibration.Add(Values({3}));
  if (status.ok()) status = calibration.Finish().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(CalibrationTest, ItsDeadlineAndCancelEndTheQuestionForTheServersLimits) {
  service_.says_nothing = true;
  Client client(address_);
  CalibrationOptions options;
  options.timeout = absl::Milliseconds(300);
  Calibration brief = client.Calibrate(options);
  const absl::Time begin = absl::Now();
  EXPECT_EQ(brief.Add(Values({2000})).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1));

  service_.asked = false;
  Calibration calibration = client.Calibrate();
  std::thread canceller([&] {
    while (!service_.asked) absl::SleepFor(absl::Milliseconds(1));
    calibration.Cancel();
  });
  EXPECT_EQ(calibration.Add(Values({2000})).code(), absl::StatusCode::kCancelled);
  canceller.join();
  EXPECT_LT(absl::Now() - begin, absl::Minutes(2));
}

TEST_F(CalibrationTest, FailsForGoodWhenTheServersLimitsCannotBeHad) {
  service_.refuses = true;
  Client client(address_);
  Calibration calibration = client.Calibrate();
  const absl::Status status = calibration.Add(Values({2000}));
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  service_.refuses = false;
  EXPECT_EQ(calibration.Add(Values({3})), status);
  EXPECT_EQ(calibration.Finish().status(), status);
  EXPECT_EQ(service_.messages, 0);
}

TEST_F(CalibrationTest, NeedsAServer) {
  Client wrong("http://quantd");
  Calibration never = wrong.Calibrate();
  EXPECT_EQ(never.Add(Values({3})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(never.Finish().status().code(), absl::StatusCode::kInvalidArgument);

  Client nobody("127.0.0.1:1");
  Calibration unheard = nobody.Calibrate();
  absl::Status status = unheard.Add(Values({3}));
  if (status.ok()) status = unheard.Finish().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace quantd::client
