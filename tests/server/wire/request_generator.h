// Random requests that mostly make sense: tensors with the bytes that their shapes need, scales
// that fit. RandomMessage (message_generator.h) hardly ever makes one. And messages that are
// requests, or almost.
#ifndef QUANTD_TESTS_SERVER_WIRE_REQUEST_GENERATOR_H_
#define QUANTD_TESTS_SERVER_WIRE_REQUEST_GENERATOR_H_

#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "server/wire/method.h"
#include "wire_testing.h"

namespace quantd::wire {

// The methods whose requests are tested: the operations, and Stream, whose requests are items.
inline constexpr Method kSubjects[] = {Method::kQuantize, Method::kDequantize,
                                       Method::kDynamicQuantize, Method::kQuantizeEmbeddings,
                                       Method::kStream};

const google::protobuf::MethodDescriptor& DescriptorOf(Method method);
// An empty message of the type.
std::unique_ptr<google::protobuf::Message> NewMessage(const google::protobuf::Descriptor& type);

// A serialized request of an operation, of a few hundred bytes.
std::string RandomRequest(Method method, Random& random);
// A request of the method, or almost one.
std::string AnyMessage(Method subject, Random& random);

}  // namespace quantd::wire

#endif  // QUANTD_TESTS_SERVER_WIRE_REQUEST_GENERATOR_H_
