// A good request, the equality of two requests in every field of parameters.h and beside them, and
// the errors of bad ones.
#ifndef QUANTD_TESTS_SERVER_WIRE_REQUEST_TESTING_H_
#define QUANTD_TESTS_SERVER_WIRE_REQUEST_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <variant>

#include "absl/status/statusor.h"
#include "quantd/field_error.h"
#include "server/wire/request.h"
#include "wire_testing.h"

namespace quantd {

inline bool operator==(const TensorView& a, const TensorView& b) {
  return a.data_type == b.data_type && a.shape == b.shape && a.bytes == b.bytes;
}
inline bool operator==(const Granularity& a, const Granularity& b) {
  return a.axis == b.axis && a.block_size == b.block_size && a.block_shape == b.block_shape;
}

namespace wire {

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

// All fields of parameters: a new one does not compile before it is named here.
inline auto Fields(const QuantizeParameters& parameters) {
  const auto& [x, scale, zero_point, type, granularity, saturate, precision, order, report] =
      parameters;
  return std::tie(x, scale, zero_point, type, granularity, saturate, precision, order, report);
}
inline auto Fields(const DequantizeParameters& parameters) {
  const auto& [x, scale, zero_point, tensor_scale, type, granularity] = parameters;
  return std::tie(x, scale, zero_point, tensor_scale, type, granularity);
}
inline auto Fields(const DynamicQuantizeParameters& parameters) {
  const auto& [x, type, granularity, saturate, scale_type, symmetry, non_finite, report] =
      parameters;
  return std::tie(x, type, granularity, saturate, scale_type, symmetry, non_finite, report);
}
inline auto Fields(const QuantizeEmbeddingsParameters& parameters) {
  const auto& [x, recipe, ranges, type, dimensions, normalize, order, threshold, signed_bits,
               non_finite, report] = parameters;
  return std::tie(x, recipe, ranges, type, dimensions, normalize, order, threshold, signed_bits,
                  non_finite, report);
}

inline void ExpectSame(const SharedReference& a, const SharedReference& b) {
  ASSERT_EQ(std::tie(a.region, a.offset, a.byte_size), std::tie(b.region, b.offset, b.byte_size));
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
        using Parameters = std::decay_t<decltype(parameters)>;
        ASSERT_TRUE(Fields(parameters) == Fields(std::get<Parameters>(b->parameters)));
      },
      a->parameters);
}

}  // namespace wire
}  // namespace quantd

#endif  // QUANTD_TESTS_SERVER_WIRE_REQUEST_TESTING_H_
