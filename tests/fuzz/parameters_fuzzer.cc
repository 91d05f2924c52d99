// Any bytes as a PutParametersRequest, as a file of a stored set, and as a reference.
//
// Checked: no crash; a message is split exactly when protobuf's parser accepts it; what is stored
// can be read, encodes to itself, and means to protobuf what the message meant; a reference's text
// is canonical and never a path.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <string>

#include "fuzzing.h"
#include "quantd/v1/parameters.pb.h"
#include "server/stored_parameters/canonical.h"
#include "server/stored_parameters/reference.h"
#include "server/wire/split.h"

namespace quantd::fuzz {

uint64_t useful_inputs = 0;

namespace {

std::string ScaleBytes(Random& random, size_t elements) {
  std::string bytes;
  for (size_t i = 0; i < elements; ++i) {
    const float scale = 0.5F * static_cast<float>(1 + Below(random, 9));
    bytes.append(reinterpret_cast<const char*>(&scale), sizeof(scale));
  }
  return bytes;
}

void CheckFile(const std::string& bytes) {
  const auto set = stored_parameters::Decode(bytes);
  if (!set.ok()) return;
  Require((*set)->bytes == bytes, "a set's bytes are its file's");
  v1::ParameterSet parsed;
  Require(parsed.ParseFromString(bytes), "a set is a message");
  Require(parsed.SerializeAsString() == bytes, "a set is what protobuf writes");
}

void CheckMessage(wire::BytesView message, const std::string& text) {
  const auto method = wire::Method::kPutParameters;
  const wire::Split split = wire::SplitRequest(method, message);
  v1::PutParametersRequest skeleton, parsed;
  const bool taken = split.ok && skeleton.ParseFromString(split.skeleton);
  Require(taken == parsed.ParseFromString(text), "what protobuf takes is taken");
  Require(wire::RestOf(method, message).bytes <= message.size(), "the rest is a part");
  if (!taken) return;
  Require(skeleton.name() == parsed.name(), "the name is protobuf's");
  const auto bytes = stored_parameters::Encode(skeleton.parameters(), split.raw);
  if (!bytes.ok()) return;
  ++useful_inputs;
  const auto set = stored_parameters::Decode(*bytes);
  Require(set.ok(), "what is stored can be read");
  const v1::ParameterSet& meant = parsed.parameters();
  Require((*set)->skeleton.kind_case() == meant.kind_case(), "the kind stays");
  v1::ParameterSet stored;
  Require(stored.ParseFromString(*bytes), "what is stored is a message");
  Require(stored.quantize().axis() == meant.quantize().axis() &&
              stored.quantize().has_axis() == meant.quantize().has_axis() &&
              stored.quantize().scale().shape_size() == meant.quantize().scale().shape_size(),
          "fields stay");
  CheckFile(*bytes);
}

}  // namespace

std::string RandomInput(Random& random) {
  v1::PutParametersRequest request;
  request.set_name("a");
  if (OneIn(random, 3)) {
    v1::QuantizeEmbeddingsRequest& embeddings =
        *request.mutable_parameters()->mutable_quantize_embeddings();
    embeddings.set_recipe(static_cast<v1::EmbeddingRecipe>(2 + Below(random, 3)));
    embeddings.set_normalize(OneIn(random, 2));
    embeddings.set_dimensions(static_cast<int64_t>(Below(random, 5)));
  } else {
    v1::QuantizeRequest& quantize = *request.mutable_parameters()->mutable_quantize();
    const size_t elements = 1 + Below(random, 5);
    quantize.mutable_scale()->set_data_type(v1::DATA_TYPE_FLOAT);
    quantize.mutable_scale()->add_shape(static_cast<int64_t>(elements));
    quantize.mutable_scale()->set_raw_data(ScaleBytes(random, elements));
    if (OneIn(random, 2)) quantize.set_axis(static_cast<int64_t>(Below(random, 3)));
    if (OneIn(random, 3)) quantize.set_output_type(v1::DATA_TYPE_INT8);
  }
  std::string bytes = request.SerializeAsString();
  if (OneIn(random, 4)) bytes = request.parameters().SerializeAsString();
  if (OneIn(random, 4)) {
    const size_t at = Below(random, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(random, 8)));
  }
  if (OneIn(random, 16)) bytes.resize(Below(random, bytes.size()));
  return bytes;
}

}  // namespace quantd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd;  // NOLINT(google-build-using-namespace)
  static const google::protobuf::LogSilencer silencer;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::CheckMessage({data, size}, text);
  fuzz::CheckFile(text);
  const auto reference = stored_parameters::ParseReference(text, "parameters");
  if (reference.ok()) {
    fuzz::Require(reference->Text() == text, "a reference is its text");
    fuzz::Require(text.find('/') == std::string::npos, "a reference is not a path");
    if (reference->is_full()) {
      const auto file = stored_parameters::ParseFileName(reference->FileName());
      fuzz::Require(file.has_value() && file->Text() == text, "a file is its reference");
    }
  }
  return 0;
}
