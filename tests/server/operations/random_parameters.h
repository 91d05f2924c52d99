// Requests without a message: parameters of every kind and size, over bytes that they do not own.
#ifndef QUANTD_TESTS_SERVER_OPERATIONS_RANDOM_PARAMETERS_H_
#define QUANTD_TESTS_SERVER_OPERATIONS_RANDOM_PARAMETERS_H_

#include "server/wire/request.h"
#include "wire_testing.h"

namespace quantd::operations {

// Parameters of the method that a plan mostly accepts: shapes that are large, empty, or empty with
// huge dimensions, all types and granularities. The bytes last as long as the program.
wire::Request RandomParameters(wire::Method method, wire::Random& random);

// A tensor with as many bytes as its type and shape need: 0x38 each, which is a valid scale in
// every type, or 0.
TensorView MakeView(DataType type, const Shape& shape, bool zeros = false);

}  // namespace quantd::operations

#endif  // QUANTD_TESTS_SERVER_OPERATIONS_RANDOM_PARAMETERS_H_
