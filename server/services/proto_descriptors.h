// The protos that reflection knows: those that are compiled into the program, and google.rpc's.
#ifndef QUANTD_SERVER_SERVICES_PROTO_DESCRIPTORS_H_
#define QUANTD_SERVER_SERVICES_PROTO_DESCRIPTORS_H_

#include <google/protobuf/descriptor.h>

namespace quantd::services {

// Errors carry messages of google.rpc (server/wire/status_details.h), which this program writes
// without having them: tools ask for their descriptors to print them. Made on the first call, lives
// as long as the program. Safe from any thread.
const google::protobuf::DescriptorPool& Descriptors();

}  // namespace quantd::services

#endif  // QUANTD_SERVER_SERVICES_PROTO_DESCRIPTORS_H_
