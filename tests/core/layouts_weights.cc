#include "layouts_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "types/codes.h"
#include "types/small_float.h"

namespace quantd {
namespace {

// Bytes that are copied, as a file's are.
class CopyingSource final : public ByteSource {
 public:
  explicit CopyingSource(const ByteVector& bytes) : bytes_(bytes) {}
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const override {
    if (offset > bytes_.size() || to.size() > bytes_.size() - offset) {
      return absl::OutOfRangeError(absl::StrCat("read ", offset, " + ", to.size()));
    }
    std::copy_n(bytes_.data() + offset, to.size(), to.data());
    return absl::OkStatus();
  }

 private:
  const ByteVector& bytes_;
};

// Bytes each of which must be written once.
class CountingSink final : public ByteSink {
 public:
  explicit CountingSink(uint64_t size) : bytes_(size, 0xA5), written_(size) {}
  absl::Status Write(uint64_t offset, absl::Span<const uint8_t> from) override {
    if (offset > bytes_.size() || from.size() > bytes_.size() - offset) {
      return absl::OutOfRangeError(absl::StrCat("write ", offset, " + ", from.size()));
    }
    for (size_t i = 0; i < from.size(); ++i) {
      bytes_[offset + i] = from[i];
      ++written_[offset + i];
    }
    return absl::OkStatus();
  }
  bool Complete() const {
    return std::all_of(written_.begin(), written_.end(), [](uint8_t n) { return n == 1; });
  }
  ByteVector Take() { return std::move(bytes_); }

 private:
  ByteVector bytes_;
  std::vector<uint8_t> written_;
};

std::unique_ptr<ByteSource> SourceOf(const ByteVector& bytes, Access access) {
  if (access == Access::kPieces) return std::make_unique<CopyingSource>(bytes);
  return std::make_unique<MemorySource>(absl::MakeConstSpan(bytes));
}

bool Never() { return false; }

}  // namespace

std::vector<float> ToFloats(DataType type, const ByteVector& bytes) {
  std::vector<float> values(bytes.size() * 8 / static_cast<size_t>(Info(type).bits));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = DecodeFloat(type, LoadCode(type, bytes.data(), static_cast<int64_t>(i)));
  }
  return values;
}

ByteVector FromFloats(DataType type, const std::vector<float>& values) {
  ByteVector bytes(values.size() * static_cast<size_t>(Info(type).bits) / 8);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t code = type == DataType::kFloat
                              ? std::bit_cast<uint32_t>(values[i])
                              : EncodeFormat(FormatOf(type), values[i], /*saturate=*/false);
    StoreCode(type, bytes.data(), static_cast<int64_t>(i), code);
  }
  return bytes;
}

Encoded Encode(const WeightPlan& plan, const ByteVector& weight, const Executor& executor,
               Access access) {
  const absl::StatusOr<WeightFacts> facts =
      MeasureWeight(plan, *SourceOf(weight, access), executor, Never);
  if (!facts.ok()) return {.status = facts.status(), .facts = {}, .parts = {}};
  return EncodeWith(plan, *facts, weight, executor, access);
}

Encoded EncodeWith(const WeightPlan& plan, const WeightFacts& facts, const ByteVector& weight,
                   const Executor& executor, Access access) {
  Encoded encoded{.status = {}, .facts = facts, .parts = {}};
  std::vector<CountingSink> sinks;
  for (const LayoutPart& part : WeightParts(plan, facts)) sinks.emplace_back(part.bytes);
  std::vector<ByteSink*> pointers;
  for (CountingSink& sink : sinks) pointers.push_back(&sink);
  encoded.status = EncodeWeight(plan, facts, *SourceOf(weight, access), pointers, executor, Never);
  for (CountingSink& sink : sinks) {
    if (encoded.status.ok() && !sink.Complete()) {
      encoded.status = absl::InternalError("a byte was not written once");
    }
    encoded.parts.push_back(sink.Take());
  }
  return encoded;
}

std::string LayoutName(const testing::TestParamInfo<Layout>& info) {
  std::string name(Info(info.param).name);
  for (char& c : name) c = absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

absl::StatusOr<ByteVector> Decode(const WeightPlan& plan, const WeightFacts& facts,
                                  const std::vector<ByteVector>& parts, DataType output,
                                  const Executor& executor, Access access) {
  std::vector<std::unique_ptr<ByteSource>> sources;
  std::vector<const ByteSource*> pointers;
  for (const ByteVector& part : parts) {
    sources.push_back(SourceOf(part, access));
    pointers.push_back(sources.back().get());
  }
  CountingSink sink(ByteSize(output, plan.elements));
  absl::Status status = DecodeWeight(plan, facts, pointers, output, sink, executor, Never);
  if (!status.ok()) return status;
  if (!sink.Complete()) return absl::InternalError("a byte was not written once");
  return sink.Take();
}

std::string Difference(const ByteVector& got, const ByteVector& want) {
  if (got.size() != want.size()) return absl::StrCat(got.size(), " bytes, not ", want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] != want[i]) {
      return absl::StrCat("byte ", i, " of ", got.size(), " is ", got[i], ", not ", want[i]);
    }
  }
  return "";
}

}  // namespace quantd
