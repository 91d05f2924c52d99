#include "engine/stored_set.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/errors.h"
#include "engine/on_wire.h"
#include "quantd/client/client.h"

namespace quantd::cli {
namespace {

TensorView ToView(const v1::Tensor& tensor) {
  TensorView view;
  view.data_type = FromWire<DataType>(tensor.data_type());
  view.shape.assign(tensor.shape().begin(), tensor.shape().end());
  view.bytes = {reinterpret_cast<const uint8_t*>(tensor.raw_data().data()),
                tensor.raw_data().size()};
  return view;
}

absl::Status Unfit(const StoredSet& set, absl::string_view why) {
  return OperationError(absl::InvalidArgumentError(absl::StrCat(set.reference, " ", why)),
                        "use stored parameters", "");
}

}  // namespace

absl::StatusOr<QuantizeParameters> StoredSet::ForQuantize() const {
  if (!set->has_quantize()) return Unfit(*this, "is a set for embeddings");
  const v1::QuantizeRequest& from = set->quantize();
  if (!from.has_scale()) return Unfit(*this, "has no scale");
  QuantizeParameters to;
  to.scale = ToView(from.scale());
  if (from.has_zero_point()) to.zero_point = ToView(from.zero_point());
  to.output_type = FromWire<DataType>(from.output_type());
  if (from.has_axis()) to.granularity.axis = from.axis();
  to.granularity.block_size = from.block_size();
  to.granularity.block_shape.assign(from.block_shape().begin(), from.block_shape().end());
  to.saturate = !from.has_saturate() || from.saturate();
  to.precision = FromWire<DataType>(from.precision());
  to.zero_point_order = FromWire<ZeroPointOrder>(from.zero_point_order());
  return to;
}

absl::StatusOr<QuantizeEmbeddingsParameters> StoredSet::ForEmbeddings() const {
  if (!set->has_quantize_embeddings()) return Unfit(*this, "is not a set for embeddings");
  const v1::QuantizeEmbeddingsRequest& from = set->quantize_embeddings();
  QuantizeEmbeddingsParameters to;
  to.recipe = FromWire<EmbeddingRecipe>(from.recipe());
  if (from.has_ranges()) to.ranges = ToView(from.ranges());
  to.output_type = FromWire<DataType>(from.output_type());
  to.dimensions = from.dimensions();
  to.normalize = from.normalize();
  to.bit_order = FromWire<BitOrder>(from.bit_order());
  to.bit_threshold = FromWire<BitThreshold>(from.bit_threshold());
  to.signed_bits = FromWire<SignedBits>(from.signed_bits());
  to.non_finite = FromWire<NonFinite>(from.non_finite());
  return to;
}

absl::StatusOr<StoredSet> ReadStoredSet(const std::string& reference, const std::string& address,
                                        const client::ClientOptions& options) {
  client::Client client(address, options);
  if (!client.status().ok()) return OptionsError(client.status());
  absl::StatusOr<v1::GetParametersResponse> response = client.GetParameters(reference);
  if (!response.ok()) {
    return OperationError(ServerError(response.status(), address), "read the parameters", "");
  }
  return StoredSet{response->reference(), std::make_shared<const v1::ParameterSet>(
                                              std::move(*response->mutable_parameters()))};
}

}  // namespace quantd::cli
