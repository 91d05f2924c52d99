// A calibration: converts Python's arguments, and returns tuples of arrays. Private to quantd's
// Python code (engine_calibrate.py), like engine.h.
#ifndef QUANTD_PYTHON_CORE_CALIBRATION_H_
#define QUANTD_PYTHON_CORE_CALIBRATION_H_

#include <cstdint>
#include <memory>

#include "numpy_api.h"
#include "quantd/calibration.h"

namespace quantd::python {

// For one thread at a time; a concurrent call raises a RuntimeError. After an interrupted Add it
// must not be used any more.
class Calibration {
 public:
  // method, output_type and symmetry are the contract's numbers, 0 for none; convert and fail as in
  // engine.h.
  Calibration(nb::object convert, nb::object fail, int method, int output_type, int symmetry,
              nb::handle axis, double percentile, bool ignore_non_finite);

  void Add(nb::handle x, nb::handle timeout, int threads);
  void Merge(const nb::bytes& state, nb::handle timeout);
  // (scale, zero_point as INT32 or None, range, elements, non_finite_elements)
  nb::object Result(nb::handle timeout, int threads);
  // The state of the added values; None if nothing was added.
  nb::object State();

 private:
  class Use;

  nb::object convert_;
  nb::object fail_;
  std::unique_ptr<Calibrator> calibrator_;
  bool in_use_ = false;
  bool has_any_ = false;
};

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_CALIBRATION_H_
