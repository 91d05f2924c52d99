// Random requests for the three operations: every type, granularity and rule, in sizes that reach
// every path of the tile loops, with bytes in pieces of every kind.
#ifndef QUANTD_TESTS_CORE_OPERATIONS_RANDOM_H_
#define QUANTD_TESTS_CORE_OPERATIONS_RANDOM_H_

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/parameters.h"
#include "quantd/shape.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd {

// How long a search for a difference may take: QUANTD_TEST_SECONDS, or 4 s.
inline std::chrono::duration<double> SearchTime() {
  const char* const wanted = std::getenv("QUANTD_TEST_SECONDS");
  return std::chrono::duration<double>(wanted == nullptr ? 4 : std::atof(wanted));
}
// Where everything is slower (under an emulator or a sanitizer), a part is enough: what does not
// depend on the machine is tried elsewhere.
inline bool IsShort() { return SearchTime().count() < 4; }

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  uint32_t Bits() { return engine_(); }
  int64_t Below(int64_t end) {
    return static_cast<int64_t>(
        std::uniform_int_distribution<uint64_t>(0, static_cast<uint64_t>(end) - 1)(engine_));
  }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  float Between(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(engine_);
  }
  float Normal() { return std::normal_distribution<float>()(engine_); }
  template <typename T, size_t n>
  T Of(const T (&choices)[n]) {
    return choices[Below(n)];
  }

 private:
  std::mt19937 engine_;
};

inline constexpr DataType kFloatTypes[] = {DataType::kFloat, DataType::kFloat16,
                                           DataType::kBfloat16};
inline constexpr DataType kQuantizedTypes[] = {
    DataType::kUint8,          DataType::kInt8,       DataType::kUint16,
    DataType::kInt16,          DataType::kUint4,      DataType::kInt4,
    DataType::kUint2,          DataType::kInt2,       DataType::kFloat8E4M3Fn,
    DataType::kFloat8E4M3Fnuz, DataType::kFloat8E5M2, DataType::kFloat8E5M2Fnuz,
    DataType::kFloat6E2M3,     DataType::kFloat6E3M2, DataType::kFloat4E2M1};

// A tensor that owns its bytes.
struct OwnedTensor {
  DataType type = DataType::kFloat;
  Shape shape;
  int64_t elements = 0;
  std::vector<uint8_t> bytes;

  OwnedTensor() = default;
  OwnedTensor(DataType data_type, Shape dimensions) : type(data_type), shape(dimensions) {
    elements = *ElementCount(shape, "test");
    bytes.resize(ByteSize(type, elements));
  }
  void Set(int64_t index, uint32_t code) { StoreCode(type, bytes.data(), index, code); }
  TensorView View() const { return {type, shape, absl::MakeConstSpan(bytes)}; }
};

// Memory for the results of DynamicQuantize.
struct DynamicAnswer {
  std::vector<uint8_t> y;
  std::vector<uint8_t> scale;
  std::vector<uint8_t> zero_point;
  std::vector<uint8_t> tensor_scale;

  explicit DynamicAnswer(const DynamicQuantizePlan& plan)
      : y(plan.output_bytes, 0xA5),
        scale(plan.scale_bytes, 0xA5),
        zero_point(plan.zero_point_bytes, 0xA5),
        tensor_scale(plan.has_tensor_scale ? 4 : 0, 0xA5) {}
  DynamicQuantizeOutput Output() {
    return {absl::MakeSpan(y), absl::MakeSpan(scale), absl::MakeSpan(zero_point),
            absl::MakeSpan(tensor_scale)};
  }
};

inline uint32_t EncodeValue(DataType type, float value) {
  if (type == DataType::kFloat) return std::bit_cast<uint32_t>(value);
  if (Info(type).kind == DataTypeKind::kInteger) {
    const auto minimum = static_cast<double>(Info(type).minimum);
    const auto maximum = static_cast<double>(Info(type).maximum);
    const double whole = std::isnan(value) ? 0 : std::nearbyint(static_cast<double>(value));
    return static_cast<uint32_t>(static_cast<int64_t>(std::clamp(whole, minimum, maximum)));
  }
  return EncodeFormat(FormatOf(type), value, false);
}

// A shape of about `most` elements at most.
inline Shape RandomShape(Random& random, int64_t most) {
  Shape shape;
  if (random.OneIn(25)) return shape;  // 0-D
  if (random.OneIn(25)) {
    shape.assign({random.Below(3), 0, random.Below(4)});
    return shape;
  }
  const int64_t rank = 1 + random.Below(4);
  int64_t left = most;
  for (int64_t i = 0; i < rank; ++i) {
    static constexpr int64_t kLengths[] = {1, 2, 3, 5, 16, 31, 32, 64, 100, 129, 256, 300};
    int64_t length = random.OneIn(2) ? random.Of(kLengths) : 1 + random.Below(40);
    if (i + 1 == rank && random.OneIn(2)) length = left;
    length = std::clamp<int64_t>(length, 1, left);
    shape.push_back(length);
    left = std::max<int64_t>(1, left / length);
  }
  std::shuffle(shape.begin(), shape.end(), std::mt19937(random.Bits()));
  return shape;
}

inline int64_t Blocks(int64_t length, int64_t block) { return (length + block - 1) / block; }

inline int64_t RandomBlock(Random& random, int64_t length) {
  static constexpr int64_t kBlocks[] = {1, 2, 3, 4, 16, 32, 33, 100, 128, 1000};
  if (random.OneIn(5)) return std::max<int64_t>(length, 1);
  return std::clamp<int64_t>(random.Of(kBlocks), 1, std::max<int64_t>(length, 1));
}

// A granularity and the shape of its scales.
struct RandomBlocks {
  Granularity granularity;
  Shape scale_shape;
};

inline RandomBlocks MakeBlocks(Random& random, const Shape& shape, bool dynamic) {
  RandomBlocks made;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t kind = rank == 0 ? 0 : random.Below(dynamic ? 4 : 5);
  const int64_t axis = rank == 0 ? 0 : random.Below(rank);
  switch (kind) {
    case 0:  // per tensor
      if (!dynamic && random.OneIn(2)) made.scale_shape = {1};
      break;
    case 1:  // per axis
      made.granularity.axis = random.OneIn(2) ? axis : axis - rank;
      made.scale_shape = {shape[axis]};
      break;
    case 2:  // blocks
      made.granularity.axis = axis;
      made.granularity.block_size = RandomBlock(random, shape[axis]);
      made.scale_shape = shape;
      made.scale_shape[axis] = Blocks(shape[axis], made.granularity.block_size);
      break;
    case 3:  // block shape
      for (int64_t length : shape) {
        const bool whole = random.OneIn(3);
        const int64_t block = whole ? std::max<int64_t>(length, 1) : RandomBlock(random, length);
        made.granularity.block_shape.push_back(whole ? -1 : block);
        made.scale_shape.push_back(whole ? 1 : Blocks(length, block));
      }
      break;
    default:  // groups
      for (int64_t length : shape) {
        static constexpr int64_t kParts[] = {1, 2, 3, 4, 16};
        int64_t parts = random.OneIn(3) ? length : random.Of(kParts);
        if (parts == 0 || length % parts != 0) parts = 1;
        made.scale_shape.push_back(length == 0 ? 0 : parts);
      }
      if (rank == 1) {  // a 1-D scale is always per axis
        made.granularity.axis = 0;
        made.scale_shape = {shape[0]};
      }
  }
  return made;
}

inline OwnedTensor RandomScale(Random& random, DataType type, const Shape& shape, bool any_value) {
  OwnedTensor scale(type, shape);
  const bool wild = random.OneIn(6);
  const float middle = random.Between(-8, 8);
  for (int64_t i = 0; i < scale.elements; ++i) {
    uint32_t code = 0;
    for (;;) {
      if (wild && type != DataType::kInt32) {
        code = random.Bits();
        if (Info(type).bits < 32) code &= (1u << Info(type).bits) - 1;
      } else if (type == DataType::kFloat8E8M0) {
        code = static_cast<uint32_t>(120 + random.Below(16));
      } else {
        float value = std::exp2(middle + random.Between(-2, 2));
        if (random.OneIn(3)) value = -value;
        if (type == DataType::kInt32) value = static_cast<float>(1 + random.Below(1000));
        code = EncodeValue(type, value);
      }
      const float value = DecodeFloat(type, code);
      if (any_value || (value != 0 && std::isfinite(value))) break;
    }
    scale.Set(i, code);
  }
  return scale;
}

// Elements for Quantize and DynamicQuantize: most are within the range of the output at their
// scale, with ties; `finite`: only finite ones. FLOAT, or whole numbers for INT32.
inline OwnedTensor RandomInput(Random& random, DataType type, const Shape& shape,
                               const OwnedTensor* scale, DataType output, bool finite) {
  OwnedTensor x(type, shape);
  static constexpr float kSpecial[] = {0.0f,      -0.0f,    INFINITY, -INFINITY, NAN,     -NAN,
                                       3.4e38f,   -3.4e38f, 1e-40f,   -1e-45f,   1e-30f,  65504.0f,
                                       -65536.0f, 464.0f,   61440.0f, 0x1p31f,   -0x1p31f};
  const float spread = Info(output).kind == DataTypeKind::kInteger
                           ? static_cast<float>(Info(output).maximum)
                           : Info(output).largest;
  for (int64_t i = 0; i < x.elements; ++i) {
    float value = random.Normal() * spread * 0.6f;
    if (random.OneIn(4)) value = std::nearbyint(value) + 0.5f;
    if (scale != nullptr && scale->elements > 0) {
      value *=
          DecodeFloat(scale->type, LoadCode(scale->type, scale->bytes.data(),
                                            random.Below(std::min<int64_t>(scale->elements, 64))));
    }
    if (!finite && random.OneIn(20)) value = random.Of(kSpecial);
    uint32_t code = EncodeValue(type, value);
    if (!finite && random.OneIn(30)) {
      code = random.Bits();
      if (Info(type).bits == 16) code &= 0xFFFF;
    }
    if (finite && !std::isfinite(DecodeFloat(type, code))) code = 0;
    x.Set(i, code);
  }
  return x;
}

inline OwnedTensor RandomCodes(Random& random, DataType type, const Shape& shape) {
  OwnedTensor x(type, shape);
  for (uint8_t& byte : x.bytes) byte = static_cast<uint8_t>(random.Bits());
  return x;
}

}  // namespace quantd

#endif  // QUANTD_TESTS_CORE_OPERATIONS_RANDOM_H_
