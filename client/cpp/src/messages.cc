#include "messages.h"

#include <utility>

namespace quantd::client {
namespace {

template <typename Request>
void SetGranularity(const Granularity& granularity, Request* request) {
  if (granularity.axis.has_value()) request->set_axis(*granularity.axis);
  request->set_block_size(granularity.block_size);
  request->mutable_block_shape()->Add(granularity.block_shape.begin(),
                                      granularity.block_shape.end());
}

}  // namespace

void SetPlace(const SharedSpan& from, v1::SharedMemoryReference* to) {
  to->set_region(from.region);
  to->set_offset(from.offset);
  to->set_byte_size(from.byte_size);
}

void SetTensor(const Tensor& from, v1::Tensor* to) {
  to->set_data_type(from.data_type);
  to->mutable_shape()->Add(from.shape.begin(), from.shape.end());
  if (from.shared.has_value()) {
    SetPlace(*from.shared, to->mutable_shared_memory());
  } else {
    to->set_raw_data(from.data);
  }
}

Tensor TakeTensor(v1::Tensor&& from) {
  Tensor to{from.data_type(), {from.shape().begin(), from.shape().end()}, {}};
  if (from.has_shared_memory()) {
    const v1::SharedMemoryReference& place = from.shared_memory();
    to.shared = {place.region(), place.offset(), place.byte_size()};
  } else {
    to.data = std::move(*from.mutable_raw_data());
  }
  return to;
}

v1::QuantizeRequest RequestOf(const QuantizeOptions& options) {
  v1::QuantizeRequest request;
  request.set_output_type(options.output_type);
  SetGranularity(options.granularity, &request);
  request.set_saturate(options.saturate);
  request.set_precision(options.precision);
  request.set_zero_point_order(options.zero_point_order);
  request.set_report_error(options.report_error);
  return request;
}

v1::DequantizeRequest RequestOf(const DequantizeOptions& options) {
  v1::DequantizeRequest request;
  request.set_output_type(options.output_type);
  SetGranularity(options.granularity, &request);
  if (options.tensor_scale.has_value()) {
    SetTensor(*options.tensor_scale, request.mutable_tensor_scale());
  }
  return request;
}

v1::DynamicQuantizeRequest RequestOf(const DynamicQuantizeOptions& options) {
  v1::DynamicQuantizeRequest request;
  request.set_output_type(options.output_type);
  SetGranularity(options.granularity, &request);
  request.set_saturate(options.saturate);
  request.set_scale_type(options.scale_type);
  request.set_symmetry(options.symmetry);
  request.set_non_finite(options.non_finite);
  request.set_report_error(options.report_error);
  return request;
}

v1::QuantizeEmbeddingsRequest RequestOf(const EmbeddingOptions& options) {
  v1::QuantizeEmbeddingsRequest request;
  request.set_recipe(options.recipe);
  if (options.ranges.has_value()) SetTensor(*options.ranges, request.mutable_ranges());
  request.set_output_type(options.output_type);
  request.set_dimensions(options.dimensions);
  request.set_normalize(options.normalize);
  request.set_bit_order(options.bit_order);
  request.set_bit_threshold(options.bit_threshold);
  request.set_signed_bits(options.signed_bits);
  request.set_non_finite(options.non_finite);
  request.set_report_error(options.report_error);
  return request;
}

}  // namespace quantd::client
