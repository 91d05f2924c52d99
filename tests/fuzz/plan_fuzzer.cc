// Any types, shapes, axes, blocks and bytes as a task for the core: requests without a message.
// Most of them have tensors that fit, which a fuzzer of messages hardly ever finds.
//
// Checked: no crash and no sanitizer's complaint; never more memory than was announced before the
// plan, or by it; the scalar kernels and several threads write the same bytes.
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "counted_memory.h"
#include "fuzzing.h"
#include "parameters.h"
#include "quantd/data_type.h"
#include "quantd/executor.h"
#include "quantd/targets.h"
#include "server/memory/buffer.h"
#include "server/operations/memory.h"
#include "server/operations/operation.h"
#include "server/wire/encode.h"
#include "server/wire/request.h"

namespace quantd::fuzz {

uint64_t useful_inputs = 0;

std::string RandomInput(Random& random) { return ParameterBytes(random); }

namespace {

constexpr uint64_t kMostResponse = 1 << 20;
// The text of an error, and the objects that own what is large.
constexpr uint64_t kFixed = 4096;

memory::Pool& Pool() {
  static auto* const pool = new memory::Pool;
  return *pool;
}

bool Never() { return false; }

struct Answered {
  absl::Status status;
  DataType type = DataType::kUnspecified;  // of y
  std::string y, others;
  uint64_t pieces = 0;  // of the response, outside of operator new
};

Answered Execute(const operations::Operation& operation, const Executor& executor, bool keep) {
  Answered answered;
  wire::Response response(operation.response_layout(), Pool());
  Require(response.has_memory(), "there is memory for a small answer");
  const wire::ResponseContents& contents = response.contents();
  answered.pieces = contents.y.size() + contents.y_scale.size() + contents.y_zero_point.size();
  answered.status = operation.Execute(executor, Never, response.contents());
  if (keep && answered.status.ok()) {
    answered.type = operation.response_layout().y.data_type;
    answered.y = wire::ToString(contents.y);
    for (const auto& bytes : {contents.y_scale, contents.y_zero_point, contents.y_tensor_scale}) {
      absl::StrAppend(&answered.others, wire::ToString(bytes));
    }
  }
  const bool raw = operation.response_layout().encoding == wire::Encoding::kRaw;
  if (!answered.status.ok()) return answered;
  const memory::Piece piece = std::move(response).Finish();
  Require(piece.size <= wire::MaxEncodedBytes(operation.response_layout()),
          "the answer is as long as the plan said at most");
  answered.pieces = piece.size + (raw ? 0 : answered.pieces);
  return answered;
}

// `bits`: those of a float of 16 or 32 bits.
bool IsNan(DataType type, uint32_t bits) {
  if (type == DataType::kFloat) return (bits & 0x7fffffff) > 0x7f800000;
  if (type == DataType::kFloat16) return (bits & 0x7fff) > 0x7c00;
  return type == DataType::kBfloat16 && (bits & 0x7fff) > 0x7f80;
}

// Bit for bit; but a NaN may be any NaN.
bool Same(const Answered& a, const Answered& b) {
  if (a.others != b.others || a.y.size() != b.y.size()) return false;
  if (a.y == b.y || a.type == DataType::kUnspecified) return a.y == b.y;
  const size_t width = static_cast<size_t>(Info(a.type).bits) / 8;
  if (width < 2) return false;
  for (size_t at = 0; at < a.y.size(); at += width) {
    uint32_t one = 0, other = 0;
    std::memcpy(&one, a.y.data() + at, width);
    std::memcpy(&other, b.y.data() + at, width);
    if (one != other && !(IsNan(a.type, one) && IsNan(a.type, other))) return false;
  }
  return true;
}

// True if there was a response.
bool Serve(const wire::Request& request) {
  static const Executor* const alone = new Executor(1);
  static const Executor* const together = new Executor(2);
  uint64_t bound = 0;
  Require(wire::Measure([&] { bound = operations::MemoryBound(request); }).peak_bytes <= 1024,
          "telling it takes next to nothing");
  bool small = false;
  uint64_t pieces = 0;
  const wire::MemoryUsed used = wire::Measure([&] {
    const absl::StatusOr<operations::Operation> operation = operations::Plan(request);
    if (!operation.ok()) {
      const absl::StatusCode code = operation.status().code();
      Require(code == absl::StatusCode::kInvalidArgument ||
                  code == absl::StatusCode::kUnimplemented ||
                  code == absl::StatusCode::kResourceExhausted,
              "a bad request is the client's fault");
      return;
    }
    Require(operation->memory_bytes() <= bound, "the plan takes no more than was told before it");
    small = operation->memory_bytes() <= kMostResponse;
    if (small) pieces = Execute(*operation, *alone, false).pieces;
  });
  Require(used.peak_bytes + pieces <= bound + kFixed, "no more is taken than was told");
  if (!small) return false;
  const Answered first = Execute(*operations::Plan(request), *together, true);
  Require(SelectTarget("scalar").ok(), "scalar loops are everywhere");
  const Answered second = Execute(*operations::Plan(request), *alone, true);
  Require(SelectTarget("").ok(), "the best ones, too");
  Require(first.status == second.status, "all kernels find the same wrong");
  Require(Same(first, second), "all kernels write the same bytes");
  return first.status.ok();
}

}  // namespace
}  // namespace quantd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd::fuzz;
  const Parameters parameters({data, size});
  const quantd::wire::Request& request = parameters.request();
  static const bool warm = [&request] { return Serve(request); }();  // what it makes for all
  (void)warm;
  if (Serve(request)) ++useful_inputs;
  return 0;
}
