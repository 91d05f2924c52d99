// A tensor of a request or a result.
//
//   Tensor x = Tensor::Of<float>(values, {rows, columns});
//   absl::StatusOr<std::vector<uint8_t>> y = result.y.Values<uint8_t>();
//
// A value type: copies are deep, and different objects may be used by different threads.
#ifndef QUANTD_CLIENT_TENSOR_H_
#define QUANTD_CLIENT_TENSOR_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "quantd/client/shared_region.h"
#include "quantd/v1/tensor.pb.h"

namespace quantd::client {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire format is little endian");

// The data type of a C++ type: float and the integers of 8, 16 and 32 bits that the service has.
// Elements of other types (FLOAT16, FLOAT8, packed ones) are bytes in Tensor::data.
template <typename T>
constexpr v1::DataType DataTypeOf() {
  if constexpr (std::is_same_v<T, float>) return v1::DATA_TYPE_FLOAT;
  if constexpr (std::is_same_v<T, uint8_t>) return v1::DATA_TYPE_UINT8;
  if constexpr (std::is_same_v<T, int8_t>) return v1::DATA_TYPE_INT8;
  if constexpr (std::is_same_v<T, uint16_t>) return v1::DATA_TYPE_UINT16;
  if constexpr (std::is_same_v<T, int16_t>) return v1::DATA_TYPE_INT16;
  if constexpr (std::is_same_v<T, int32_t>) return v1::DATA_TYPE_INT32;
  return v1::DATA_TYPE_UNSPECIFIED;
}

struct Tensor {
  v1::DataType data_type = v1::DATA_TYPE_UNSPECIFIED;
  std::vector<int64_t> shape;  // outermost first; empty: 0-D, one element
  std::string data;            // little endian, row-major, packed: as quantd.v1.Tensor.raw_data
  std::optional<SharedSpan> shared = {};  // if set, the bytes are there instead of in `data`

  // A tensor of `values`, row-major. The server checks whether their number matches the
  // shape.
  template <typename T>
  static Tensor Of(absl::Span<const T> values, std::vector<int64_t> tensor_shape) {
    static_assert(DataTypeOf<T>() != v1::DATA_TYPE_UNSPECIFIED, "no such type on the wire");
    const size_t bytes = values.size() * sizeof(T);
    Tensor result{DataTypeOf<T>(), std::move(tensor_shape), std::string(bytes, '\0')};
    if (!values.empty()) std::memcpy(result.data.data(), values.data(), bytes);
    return result;
  }
  // A tensor in memory shared by the server and this process. Its size follows from type and
  // shape.
  static Tensor In(SharedSpan span, v1::DataType type, std::vector<int64_t> tensor_shape) {
    return {type, std::move(tensor_shape), {}, std::move(span)};
  }
  // A 0-D tensor, such as one scale for a whole tensor.
  template <typename T>
  static Tensor Scalar(T value) {
    return Of<T>(absl::Span<const T>(&value, 1), {});
  }

  // The elements. INVALID_ARGUMENT if the tensor is of another type, or in shared memory.
  template <typename T>
  absl::StatusOr<std::vector<T>> Values() const {
    if (shared.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the tensor lies in the region ", shared->region, ": read it there"));
    }
    if (data_type != DataTypeOf<T>() || data.size() % sizeof(T) != 0) {
      return absl::InvalidArgumentError(absl::StrCat("the tensor holds ",
                                                     v1::DataType_Name(data_type), ", asked for ",
                                                     v1::DataType_Name(DataTypeOf<T>())));
    }
    std::vector<T> values(data.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), data.data(), data.size());
    return values;
  }
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_TENSOR_H_
