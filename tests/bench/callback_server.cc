// What a C++ programmer would run instead of quantd: gRPC's callback service, protobuf messages,
// and ONNX Runtime for the arithmetic.
//
//   callback_server READY_FILE LIBRARY MODEL
//
// Answers DynamicQuantize of FLOAT tensors to UINT8. ONNX Runtime reads the parsed request's bytes
// and writes into the response's; only protobuf copies bytes. Each call computes in one of gRPC's
// threads, so that several calls in flight use all cores.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "onnxruntime.h"
#include "quantd/v1/quantization.grpc.pb.h"

namespace quantd::bench {
namespace {

class Service final : public v1::QuantizationService::CallbackService {
 public:
  explicit Service(const OrtModel& model) : model_(model) {}

  grpc::ServerUnaryReactor* DynamicQuantize(grpc::CallbackServerContext* context,
                                            const v1::DynamicQuantizeRequest* request,
                                            v1::DynamicQuantizeResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(Compute(*request, *response));
    return reactor;
  }

 private:
  grpc::Status Compute(const v1::DynamicQuantizeRequest& request,
                       v1::DynamicQuantizeResponse& response) const {
    if (request.x().data_type() != v1::DATA_TYPE_FLOAT ||
        (request.output_type() != v1::DATA_TYPE_UNSPECIFIED &&
         request.output_type() != v1::DATA_TYPE_UINT8)) {
      return {grpc::StatusCode::UNIMPLEMENTED, "FLOAT to UINT8 only"};
    }
    const std::string& x = request.x().raw_data();
    const auto size = static_cast<int64_t>(x.size() / sizeof(float));
    *response.mutable_y()->mutable_shape() = request.x().shape();
    const OrtTensor input{
        "x", const_cast<char*>(x.data()), x.size(), {size}, OrtElementType::kFloat};
    const auto bound = model_.Bind(
        {input},
        {Output("y", *response.mutable_y(), v1::DATA_TYPE_UINT8, {size}),
         Output("y_scale", *response.mutable_y_scale(), v1::DATA_TYPE_FLOAT, {}),
         Output("y_zero_point", *response.mutable_y_zero_point(), v1::DATA_TYPE_UINT8, {})});
    const absl::Status status = bound.ok() ? (*bound)() : bound.status();
    return status.ok() ? grpc::Status::OK
                       : grpc::Status(grpc::StatusCode::INTERNAL, std::string(status.message()));
  }

  // Makes room in the tensor; `shape` comes from ONNX Runtime.
  static OrtTensor Output(const char* name, v1::Tensor& tensor, v1::DataType type,
                          std::vector<int64_t> shape) {
    tensor.set_data_type(type);
    const bool is_float = type == v1::DATA_TYPE_FLOAT;
    std::string& data = *tensor.mutable_raw_data();
    data.resize((shape.empty() ? 1 : static_cast<size_t>(shape[0])) * (is_float ? 4 : 1));
    return {name, data.data(), data.size(), std::move(shape),
            is_float ? OrtElementType::kFloat : OrtElementType::kUint8};
  }

  const OrtModel& model_;
};

int Main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto model = OrtModel::Open(argv[2], argv[3], 1);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  Service service(*model);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::ofstream(argv[1]) << absl::StrCat("{\"grpc\": [\"127.0.0.1:", port, "\"]}") << std::endl;
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace quantd::bench

int main(int argc, char** argv) { return quantd::bench::Main(argc, argv); }
