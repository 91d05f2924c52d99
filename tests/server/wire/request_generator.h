// Random requests that mostly make sense: tensors with the bytes that their shapes need, scales
// that fit. RandomMessage (message_generator.h) hardly ever makes one.
#ifndef QUANTD_TESTS_SERVER_WIRE_REQUEST_GENERATOR_H_
#define QUANTD_TESTS_SERVER_WIRE_REQUEST_GENERATOR_H_

#include <string>

#include "server/wire/method.h"
#include "wire_testing.h"

namespace quantd::wire {

// A serialized request of the method, of a few hundred bytes.
std::string RandomRequest(Method method, Random& random);

}  // namespace quantd::wire

#endif  // QUANTD_TESTS_SERVER_WIRE_REQUEST_GENERATOR_H_
