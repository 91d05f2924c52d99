// A good request, the equality of two requests in every field of parameters.h and beside them, and
// the errors of bad ones.
#ifndef QUANTD_TESTS_SERVER_WIRE_REQUEST_TESTING_H_
#define QUANTD_TESTS_SERVER_WIRE_REQUEST_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/status/statusor.h"
#include "quantd/field_error.h"
#include "server/wire/request.h"
#include "wire_testing.h"

namespace quantd::wire {

inline v1::QuantizeRequest GoodQuantize() {
  v1::QuantizeRequest request;
  *request.mutable_x() =
      MakeTensor(v1::DATA_TYPE_FLOAT, {2, 2}, Bytes(std::vector<float>{1, 2, 3, 4}));
  *request.mutable_scale() = MakeTensor(v1::DATA_TYPE_FLOAT, {}, Bytes(std::vector<float>{0.5f}));
  return request;
}

inline void ExpectError(const absl::StatusOr<Request>& request, absl::string_view field,
                        absl::string_view text,
                        absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.status().code(), code);
  EXPECT_EQ(ErrorField(request.status()), field);
  EXPECT_THAT(std::string(request.status().message()), testing::HasSubstr(std::string(text)));
}

inline void ExpectSame(const TensorView& a, const TensorView& b) {
  ASSERT_EQ(a.data_type, b.data_type);
  ASSERT_EQ(a.shape, b.shape);
  ASSERT_EQ(ToString(a.bytes), ToString(b.bytes));
}
inline void ExpectSame(const std::optional<TensorView>& a, const std::optional<TensorView>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a.has_value()) ExpectSame(*a, *b);
}
inline void ExpectSame(const Granularity& a, const Granularity& b) {
  ASSERT_EQ(a.axis, b.axis);
  ASSERT_EQ(a.block_size, b.block_size);
  ASSERT_EQ(a.block_shape, b.block_shape);
}
inline void ExpectSame(const QuantizeParameters& a, const QuantizeParameters& b) {
  const auto& [x, scale, zero_point, type, granularity, saturate, precision, order, report] = a;
  ExpectSame(x, b.x);
  ExpectSame(scale, b.scale);
  ExpectSame(zero_point, b.zero_point);
  ASSERT_EQ(type, b.output_type);
  ExpectSame(granularity, b.granularity);
  ASSERT_EQ(saturate, b.saturate);
  ASSERT_EQ(precision, b.precision);
  ASSERT_EQ(order, b.zero_point_order);
  ASSERT_EQ(report, b.report_error);
}
inline void ExpectSame(const DequantizeParameters& a, const DequantizeParameters& b) {
  const auto& [x, scale, zero_point, tensor_scale, type, granularity] = a;
  ExpectSame(x, b.x);
  ExpectSame(scale, b.scale);
  ExpectSame(zero_point, b.zero_point);
  ExpectSame(tensor_scale, b.tensor_scale);
  ASSERT_EQ(type, b.output_type);
  ExpectSame(granularity, b.granularity);
}
inline void ExpectSame(const DynamicQuantizeParameters& a, const DynamicQuantizeParameters& b) {
  const auto& [x, type, granularity, saturate, scale_type, symmetry, non_finite, report] = a;
  ExpectSame(x, b.x);
  ASSERT_EQ(type, b.output_type);
  ExpectSame(granularity, b.granularity);
  ASSERT_EQ(saturate, b.saturate);
  ASSERT_EQ(scale_type, b.scale_type);
  ASSERT_EQ(symmetry, b.symmetry);
  ASSERT_EQ(non_finite, b.non_finite);
  ASSERT_EQ(report, b.report_error);
}
inline void ExpectSame(const QuantizeEmbeddingsParameters& a,
                       const QuantizeEmbeddingsParameters& b) {
  const auto& [x, recipe, ranges, type, dimensions, normalize, order, threshold, signed_bits,
               non_finite, report] = a;
  ExpectSame(x, b.x);
  ASSERT_EQ(recipe, b.recipe);
  ExpectSame(ranges, b.ranges);
  ASSERT_EQ(type, b.output_type);
  ASSERT_EQ(dimensions, b.dimensions);
  ASSERT_EQ(normalize, b.normalize);
  ASSERT_EQ(order, b.bit_order);
  ASSERT_EQ(threshold, b.bit_threshold);
  ASSERT_EQ(signed_bits, b.signed_bits);
  ASSERT_EQ(non_finite, b.non_finite);
  ASSERT_EQ(report, b.report_error);
}
inline void ExpectSame(const SharedReference& a, const SharedReference& b) {
  ASSERT_EQ(a.region, b.region);
  ASSERT_EQ(a.offset, b.offset);
  ASSERT_EQ(a.byte_size, b.byte_size);
}
inline void ExpectSame(const absl::StatusOr<Request>& a, const absl::StatusOr<Request>& b) {
  ASSERT_EQ(a.status(), b.status());
  if (!a.ok()) return;
  ASSERT_EQ(a->method(), b->method());
  ASSERT_EQ(a->output_encoding, b->output_encoding);
  ASSERT_EQ(a->shared.size(), b->shared.size());
  for (size_t i = 0; i < a->shared.size(); ++i) {
    ASSERT_EQ(a->shared[i].field, b->shared[i].field);
    ExpectSame(a->shared[i].reference, b->shared[i].reference);
  }
  ASSERT_EQ(a->output.has_value(), b->output.has_value());
  if (a->output.has_value()) ExpectSame(*a->output, *b->output);
  std::visit(
      [&](const auto& parameters) {
        ExpectSame(parameters, std::get<std::decay_t<decltype(parameters)>>(b->parameters));
      },
      a->parameters);
}

}  // namespace quantd::wire

#endif  // QUANTD_TESTS_SERVER_WIRE_REQUEST_TESTING_H_
