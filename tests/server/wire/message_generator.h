// Random bytes that are a message of the contract, or almost: in every form in which a protobuf
// writer may write it, and then as a bad writer would.
#ifndef QUANTD_TESTS_SERVER_WIRE_MESSAGE_GENERATOR_H_
#define QUANTD_TESTS_SERVER_WIRE_MESSAGE_GENERATOR_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "wire_testing.h"

namespace quantd::wire {

// Follows the descriptor, so that a new field of the contract is tested without a change here:
// fields in any order and number, packed and not, over-long varints and tags, wrong wire types,
// unknown fields, groups in groups.
std::string RandomMessage(const google::protobuf::Descriptor& type, Random& random);

// Changes, removes, adds, doubles or moves bytes; mostly in one or two places.
std::string Mutate(std::string message, Random& random);

}  // namespace quantd::wire

#endif  // QUANTD_TESTS_SERVER_WIRE_MESSAGE_GENERATOR_H_
