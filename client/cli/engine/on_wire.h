// The core's enums in the messages of the contract.
#ifndef QUANTD_CLI_ENGINE_ON_WIRE_H_
#define QUANTD_CLI_ENGINE_ON_WIRE_H_

#include "quantd/parameters.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::cli {

// kLast is the core's last value, kMax the contract's, and kOfFirst the contract's number of the
// core's 0. A value that only one of them has is a compile error.
template <auto kLast, auto kMax, int kOfFirst>
struct Pair {
  static_assert(static_cast<int>(kLast) + kOfFirst == static_cast<int>(kMax));
  using Core = decltype(kLast);
  using Wire = decltype(kMax);
  static Wire OnWire(Core value) { return static_cast<Wire>(static_cast<int>(value) + kOfFirst); }
};
template <auto kLast, auto kMax>
using Same = Pair<kLast, kMax, 0>;
// The core has no value for the contract's 0, which means its first one.
template <auto kLast, auto kMax>
using SameOrFirst = Pair<kLast, kMax, 1>;

// The pair of each enum of the core; declarations only.
Same<kDataTypes.back().type, v1::DataType_MAX> PairOf(DataType);
Same<Symmetry::kSymmetric, v1::Symmetry_MAX> PairOf(Symmetry);
Same<EmbeddingRecipe::kBits, v1::EmbeddingRecipe_MAX> PairOf(EmbeddingRecipe);
Same<BitOrder::kLsbFirst, v1::BitOrder_MAX> PairOf(BitOrder);
Same<BitThreshold::kGreaterOrEqual, v1::BitThreshold_MAX> PairOf(BitThreshold);
Same<SignedBits::kTwosComplement, v1::SignedBits_MAX> PairOf(SignedBits);
SameOrFirst<NonFinite::kIgnore, v1::NonFinite_MAX> PairOf(NonFinite);
SameOrFirst<ZeroPointOrder::kBeforeRounding, v1::ZeroPointOrder_MAX> PairOf(ZeroPointOrder);

template <typename Enum>
auto OnWire(Enum value) {
  return decltype(PairOf(value))::OnWire(value);
}

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_ON_WIRE_H_
