// Invalid elements of a weight: found by parallel tasks, reported as one error.
#ifndef QUANTD_SRC_LAYOUTS_FAULTS_H_
#define QUANTD_SRC_LAYOUTS_FAULTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "layouts/pieces.h"
#include "pool/first.h"
#include "quantd/convert_weight.h"
#include "quantd/layout.h"

namespace quantd {

// The first element of each kind. Thread-safe.
class Faults {
 public:
  explicit Faults(const WeightPlan& plan)
      : plan_(plan), non_finite_(plan.elements), too_large_(plan.elements) {}

  // Element `index` of the weight is NaN or infinite; or because of it a scale is infinite or does
  // not fit FLOAT16; or the element itself does not fit FLOAT16.
  void NonFinite(int64_t index) { non_finite_.Found(index); }
  void TooLarge(int64_t index) { too_large_.Found(index); }

  // Whether an element before `index` is not finite, so that later elements no longer matter.
  bool NonFiniteBefore(int64_t index) const { return non_finite_.index() < index; }

  // Records the first element that is not finite among `size` contiguous ones from element `index`
  // on. Returns whether there is one.
  bool FindNonFinite(const uint8_t* x, int64_t size, int64_t index);

  // OK, or the error; a non-finite element takes precedence. Reads that element.
  absl::Status Status(const ByteSource& weight) const;

 private:
  std::string Place(int64_t index) const;

  const WeightPlan& plan_;
  First non_finite_;
  First too_large_;
};

}  // namespace quantd

#endif  // QUANTD_SRC_LAYOUTS_FAULTS_H_
