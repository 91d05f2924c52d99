// A calibration, from Python's arguments to tuples of arrays. Private to quantd's Python code
// (engine_calibrate.py), as engine.h is.
#ifndef QUANTD_PYTHON_CORE_CALIBRATION_H_
#define QUANTD_PYTHON_CORE_CALIBRATION_H_

#include <cstdint>
#include <memory>

#include "numpy_api.h"
#include "quantd/calibration.h"

namespace quantd::python {

// Not to be used by two threads at a time; a call that meets another one is a RuntimeError. After
// an Add that was interrupted it is good for nothing.
class Calibration {
 public:
  // method, output_type and symmetry are the contract's numbers, 0 for none; convert and fail as
  // engine.h has them.
  Calibration(nb::object convert, nb::object fail, int method, int output_type, int symmetry,
              nb::handle axis, double percentile, bool ignore_non_finite);

  void Add(nb::handle x, nb::handle timeout, int threads);
  void Merge(const nb::bytes& state, nb::handle timeout);
  // (scale, zero_point as INT32 or None, range, elements, non_finite_elements)
  nb::object Result(nb::handle timeout, int threads);
  // Of what was added; None where nothing was.
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
