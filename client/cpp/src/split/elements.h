// What a client must know about elements itself: their width, range, non-finite values, and the
// energy of the signal.
#ifndef QUANTD_CLIENT_CPP_SPLIT_ELEMENTS_H_
#define QUANTD_CLIENT_CPP_SPLIT_ELEMENTS_H_

#include <cstdint>
#include <string>

#include "quantd/v1/tensor.pb.h"

namespace quantd::client::split {

// Bits of an element; 0 for an unknown type.
int BitsOf(v1::DataType type);

// Whether x may be of this type in Quantize and DynamicQuantize: FLOAT, FLOAT16, BFLOAT16, INT32.
bool IsInputType(v1::DataType type);

// An element as DynamicQuantize reads it: INT32 is rounded to FLOAT. REQUIRES: IsInputType(type),
// or the type of its scales, FLOAT8E8M0 or FLOAT8E4M3FN.
float ValueAt(v1::DataType type, const std::string& data, int64_t index);

// An element as the error report counts it: INT32 is exact. REQUIRES: IsInputType(type).
double ExactValueAt(v1::DataType type, const std::string& data, int64_t index);

// The properties of some elements of a tensor.
struct Scan {
  double signal = 0;  // sum of squares of the finite ones, as in ExactValueAt
  int64_t finite = 0;
  int64_t first_non_finite = -1;   // index in the tensor
  float minimum = 0, maximum = 0;  // of the finite ones and 0
};

// REQUIRES: IsInputType(type), begin + count elements in data.
Scan ScanElements(v1::DataType type, const std::string& data, int64_t begin, int64_t count);

// Widens a range by the finite elements. REQUIRES: as for ScanElements.
void WidenRange(v1::DataType type, const std::string& data, int64_t begin, int64_t count,
                float& minimum, float& maximum);

}  // namespace quantd::client::split

#endif  // QUANTD_CLIENT_CPP_SPLIT_ELEMENTS_H_
