// Any bytes as the messages of a calibration, through everything that a server does with them: up
// to three messages, each after a byte with its length.
//
// Checked: no crash and no sanitizer's complaint; accepted exactly when protobuf's parser accepts;
// a response that parses and has the announced size; a state that comes out the same again.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "fuzzing.h"
#include "message_generator.h"
#include "quantd/calibration.h"
#include "server/wire/calibrate.h"
#include "server/wire/decode.h"
#include "server/wire/split.h"
#include "server/wire/status_details.h"

namespace quantd {
namespace fuzz {

uint64_t useful_inputs = 0;

namespace {

std::string RandomState(Random& random, bool bins) {
  CalibrationOptions options;
  if (bins) options.method = CalibrationMethod::kPercentile;
  Calibrator calibrator = *Calibrator::Create(options);
  std::vector<float> values(Below(random, 20));
  for (float& value : values) value = static_cast<float>(random() % 2001) - 1000;
  const TensorView x{
      DataType::kFloat,
      {static_cast<int64_t>(values.size())},
      {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}};
  (void)calibrator.Add(x, Executor(1), [] { return false; });
  return calibrator.State();
}

std::string RandomPart(Random& random) {
  if (OneIn(random, 8)) return wire::RandomMessage(*v1::CalibrateRequest::descriptor(), random);
  v1::CalibrateRequest request;
  v1::CalibrationOptions& options = *request.mutable_options();
  options.set_method(static_cast<v1::CalibrationMethod>(Below(random, 5)));
  if (OneIn(random, 3)) options.set_output_type(static_cast<v1::DataType>(Below(random, 27)));
  if (OneIn(random, 4)) options.set_axis(static_cast<int64_t>(Below(random, 5)) - 2);
  if (OneIn(random, 2)) options.set_non_finite(v1::NON_FINITE_IGNORE);
  options.set_return_state(OneIn(random, 2));
  if (OneIn(random, 3)) request.clear_options();
  if (!OneIn(random, 4)) {
    const uint64_t rows = Below(random, 4);
    const uint64_t columns = Below(random, 5);
    std::string bytes(rows * columns * 4, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    *request.mutable_x() = wire::MakeTensor(
        v1::DATA_TYPE_FLOAT, {static_cast<int64_t>(rows), static_cast<int64_t>(columns)}, bytes);
  }
  if (OneIn(random, 2)) request.set_state(RandomState(random, OneIn(random, 2)));
  return request.SerializeAsString();
}

}  // namespace

std::string RandomInput(Random& random) {
  std::string input;
  for (uint64_t i = 0; i <= Below(random, 3); ++i) {
    std::string part = RandomPart(random);
    if (OneIn(random, 6)) part = wire::Mutate(std::move(part), random);
    // An unknown field (tag, length, zeros) extends it to a length that the byte can express.
    if (part.size() % 4 != 0 || part.size() < 2) {
      const size_t rest = 2 + (6 - part.size() % 4) % 4;
      part += {'\x7a', static_cast<char>(rest - 2)};
      part.append(rest - 2, '\0');
    }
    part.resize(std::min<size_t>(part.size(), 4 * 255));
    input += static_cast<char>(part.size() / 4);
    input += part;
  }
  return input;
}

}  // namespace fuzz

namespace {

using fuzz::Require;

constexpr uint64_t kBudgetBytes = uint64_t{4} << 20;

bool Never() { return false; }

absl::Status AddMessage(const wire::CalibrateMessage& message,
                        std::optional<Calibrator>& calibrator) {
  static const Executor* const executor = new Executor(1);
  if (!calibrator.has_value()) {
    absl::StatusOr<Calibrator> created = Calibrator::Create(message.options);
    if (!created.ok()) return created.status();
    calibrator = *std::move(created);
  }
  if (message.x.has_value() && !message.shared.has_value()) {
    const absl::StatusOr<uint64_t> bytes = calibrator->BytesWith(*message.x);
    if (!bytes.ok()) return bytes.status();
    if (*bytes > kBudgetBytes) return absl::ResourceExhaustedError("budget");
    if (absl::Status status = calibrator->Add(*message.x, *executor, Never); !status.ok()) {
      return status;
    }
  }
  if (message.state.empty()) return absl::OkStatus();
  const absl::StatusOr<uint64_t> bytes = calibrator->BytesWithState(message.state);
  if (!bytes.ok()) return bytes.status();
  if (*bytes > kBudgetBytes) return absl::ResourceExhaustedError("budget");
  return calibrator->Merge(message.state);
}

void Answer(const Calibrator& calibrator, const CalibrationOptions& options) {
  static const Executor* const executor = new Executor(1);
  static auto* const pool = new memory::Pool;
  if (calibrator.channels() == 0) return;
  const bool searches =
      options.method == CalibrationMethod::kMse || options.method == CalibrationMethod::kEntropy;
  std::string state = calibrator.State();
  Require(state.size() == calibrator.StateBytes(), "the state is as long as was told");
  Calibrator again = *Calibrator::Create(options);
  Require(again.Merge({reinterpret_cast<const uint8_t*>(state.data()), state.size()}).ok(),
          "a state can be merged");
  Require(again.State() == state, "a state comes out the same again");
  if (searches && calibrator.channels() > 1) return;  // 10 ms each
  const absl::StatusOr<Calibration> result = calibrator.Result(*executor, Never);
  Require(result.ok(), "there is a result");
  const DataType type =
      options.output_type == DataType::kUnspecified ? DataType::kUint8 : options.output_type;
  const memory::Piece piece = wire::EncodeCalibration(*result, type, state, *pool);
  Require(piece.size <= wire::MaxCalibrationBytes(calibrator.channels(), state.size()),
          "the answer is as long as was told");
  v1::CalibrateResponse response;
  Require(response.ParseFromString(wire::ToString(piece)), "the answer parses");
  ++fuzz::useful_inputs;
}

}  // namespace
}  // namespace quantd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd;
  static const google::protobuf::LogSilencer silencer;
  std::optional<Calibrator> calibrator;
  CalibrationOptions options;
  while (size > 0) {
    const size_t length = std::min<size_t>(4 * data[0], size - 1);
    const std::vector<uint8_t> bytes(data + 1, data + 1 + length);
    data += 1 + length;
    size -= 1 + length;
    const auto method = wire::Method::kCalibrate;
    Require(wire::DecodeMemoryBytes(wire::RestOf(method, bytes)) >=
                wire::SplitRequest(method, bytes).skeleton.size(),
            "what is copied is told before");
    const absl::StatusOr<wire::CalibrateMessage> message = wire::DecodeCalibrate(bytes);
    const bool malformed =
        !message.ok() && absl::StrContains(message.status().message(), "truncated");
    Require(v1::CalibrateRequest().ParseFromString(wire::ToString(bytes)) == !malformed,
            "protobuf's parser and the scanner agree");
    absl::Status status = message.status();
    if (message.ok()) {
      if (!calibrator.has_value()) options = message->options;
      status = AddMessage(*message, calibrator);
    }
    if (status.ok()) continue;
    Require(absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status),
            "a bad message is the client's fault");
    Require(!wire::ToCallStatus(status).message.empty(), "an error says what is wrong");
    return 0;
  }
  if (calibrator.has_value()) Answer(*calibrator, options);
  return 0;
}
