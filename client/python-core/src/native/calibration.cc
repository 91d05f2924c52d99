#include "calibration.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "arguments.h"
#include "operand.h"
#include "quantd/shared_executor.h"
#include "result_tensor.h"
#include "run.h"

namespace quantd::python {
namespace {

template <typename Value>
nb::object ArrayOf(DataType type, const std::vector<Value>& values, const Shape& shape) {
  ResultTensor result(type, shape);
  std::memcpy(result.bytes().data(), values.data(), result.bytes().size());
  return result.Take();
}

}  // namespace

// Ensures that one thread at a time uses it. Made and destroyed with the GIL, which guards the
// flag.
class Calibration::Use {
 public:
  explicit Use(Calibration& calibration) : in_use_(calibration.in_use_) {
    if (in_use_) throw std::runtime_error("this calibration is in use by another thread");
    in_use_ = true;
  }
  ~Use() { in_use_ = false; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  bool& in_use_;
};

Calibration::Calibration(nb::object convert, nb::object fail, int method, int output_type,
                         int symmetry, nb::handle axis, double percentile, bool ignore_non_finite)
    : convert_(std::move(convert)), fail_(std::move(fail)) {
  CalibrationOptions options;
  if (method != 0) options.method = static_cast<CalibrationMethod>(method - 1);
  options.output_type = static_cast<DataType>(output_type);
  options.symmetry = static_cast<Symmetry>(symmetry);
  if (!axis.is_none()) options.axis = ReadInteger(axis, "axis");
  options.percentile = percentile;
  options.non_finite = ignore_non_finite ? NonFinite::kIgnore : NonFinite::kReject;
  absl::StatusOr<Calibrator> made = Calibrator::Create(options);
  CheckStatus(made.status(), fail_);
  calibrator_ = std::make_unique<Calibrator>(*std::move(made));
}

void Calibration::Add(nb::handle x, nb::handle timeout, int threads) {
  const Use use(*this);
  Operand operand(x, "x", DataType::kFloat, convert_);
  // Before an array with strides of 0 is gathered, because refused arrays need no memory.
  CheckStatus(calibrator_->BytesWith(operand.Claimed()).status(), fail_);
  operand.Gather();
  const Executor& pool = SharedExecutor(threads);
  CheckStatus(Run(operand.Claimed().bytes.size(), timeout,
                  [&](Interrupted interrupted) {
                    operand.Pack(pool);
                    return calibrator_->Add(operand.Whole(), pool, interrupted);
                  }),
              fail_);
  has_any_ = true;
}

void Calibration::Merge(const nb::bytes& state, nb::handle timeout) {
  const Use use(*this);
  const absl::Span<const uint8_t> bytes(static_cast<const uint8_t*>(state.data()), state.size());
  CheckStatus(Run(kLong, timeout, [&](Interrupted) { return calibrator_->Merge(bytes); }), fail_);
  has_any_ = true;
}

nb::object Calibration::Result(nb::handle timeout, int threads) {
  const Use use(*this);
  absl::StatusOr<quantd::Calibration> found;
  CheckStatus(Run(kLong, timeout,
                  [&](Interrupted interrupted) {
                    found = calibrator_->Result(SharedExecutor(threads), interrupted);
                    return found.status();
                  }),
              fail_);
  nb::object zero_point = nb::none();
  if (found->has_zero_point) {
    zero_point = ArrayOf(DataType::kInt32, found->zero_point, found->shape);
  }
  return nb::make_tuple(ArrayOf(DataType::kFloat, found->scale, found->shape), zero_point,
                        ArrayOf(DataType::kFloat, found->range, found->range_shape),
                        found->elements, found->non_finite_elements);
}

nb::object Calibration::State() {
  const Use use(*this);
  if (!has_any_) return nb::none();
  std::string state;
  {
    const nb::gil_scoped_release no_gil;
    state = calibrator_->State();
  }
  return nb::bytes(state.data(), state.size());
}

}  // namespace quantd::python
