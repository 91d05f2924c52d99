// Random bytes that are a message of the contract, or almost: every way in which a protobuf writer
// may put one, and then what a bad one would.
#ifndef QUANTD_TESTS_SERVER_WIRE_MESSAGE_GENERATOR_H_
#define QUANTD_TESTS_SERVER_WIRE_MESSAGE_GENERATOR_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "wire_testing.h"

namespace quantd::wire {

// Follows the descriptor, so that a field that the contract gains is tested without a change here:
// fields in any order and number, packed and not, over-long varints and tags, wrong wire types,
// unknown fields, groups in groups.
std::string RandomMessage(const google::protobuf::Descriptor& type, Random& random);

// Bytes changed, lost, added, doubled, moved; mostly one or two places.
std::string Mutate(std::string message, Random& random);

}  // namespace quantd::wire

#endif  // QUANTD_TESTS_SERVER_WIRE_MESSAGE_GENERATOR_H_
