// What decoding and answering allocate: next to nothing for raw tensors, and never much more than
// what arrived. Counts every operator new of this program, so it is a program of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "server/wire/answer.h"
#include "server/wire/decode.h"
#include "server/wire/writer.h"
#include "wire_testing.h"

namespace {

std::atomic<size_t> live{0};
std::atomic<size_t> peak{0};
std::atomic<size_t> allocations{0};

constexpr size_t kHeader = alignof(std::max_align_t);

}  // namespace

void* operator new(size_t size) {
  auto* block = static_cast<char*>(std::malloc(size + kHeader));
  if (block == nullptr) std::abort();
  *reinterpret_cast<size_t*>(block) = size;
  const size_t now = live += size;
  size_t before = peak.load();
  while (before < now && !peak.compare_exchange_weak(before, now)) {
  }
  ++allocations;
  return block + kHeader;
}
void operator delete(void* pointer) noexcept {
  if (pointer == nullptr) return;
  char* const block = static_cast<char*>(pointer) - kHeader;
  live -= *reinterpret_cast<size_t*>(block);
  std::free(block);
}
void operator delete(void* pointer, size_t) noexcept { operator delete(pointer); }

namespace quantd::wire {
namespace {

struct Cost {
  size_t peak_bytes;
  size_t allocations;
};

template <typename Work>
Cost Measure(Work work) {
  const size_t live_before = live;
  const size_t allocations_before = allocations;
  peak = live_before;
  work();
  return {peak - live_before, allocations - allocations_before};
}

Cost CostOfDecoding(const SliceList& message, bool ok) {
  return Measure([&] {
    const absl::StatusOr<Request> request = DecodeRequest(Method::kQuantize, message);
    EXPECT_EQ(request.ok(), ok) << request.status();
  });
}

v1::QuantizeRequest Request(int64_t elements) {
  v1::QuantizeRequest request;
  *request.mutable_x() =
      MakeTensor(v1::DATA_TYPE_FLOAT, {elements}, std::string(4 * elements, 'a'));
  *request.mutable_scale() = MakeTensor(v1::DATA_TYPE_FLOAT, {}, "abcd");
  return request;
}

SliceList Slices(const std::string& message, size_t length) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < message.size(); at += length) {
    slices.emplace_back(message.data() + at, std::min(length, message.size() - at));
  }
  return SliceList(std::move(slices));
}

// A field of bytes, as on the wire.
std::string Field(uint32_t number, const std::string& bytes) {
  std::string field;
  AppendBytesField(number, bytes, field);
  return field;
}

TEST(WireMemoryTest, TensorBytesAreNotCopied) {
  const SliceList message = Slices(Request(16 << 20).SerializeAsString(), 8192);
  EXPECT_EQ(message.slice_count(), 8193u);
  const Cost cost = CostOfDecoding(message, true);
  EXPECT_LT(cost.peak_bytes, 2u << 20);  // the list of 8193 views while it grows; x is 64 MiB
}

TEST(WireMemoryTest, ASmallRequestAllocatesNextToNothing) {
  const SliceList message = Slices(Request(1).SerializeAsString(), 8192);
  const Cost cost = CostOfDecoding(message, true);
  EXPECT_LT(cost.peak_bytes, 4096u);
  EXPECT_LE(cost.allocations, 2u);
}

// One byte a dimension on the wire, eight in a list.
TEST(WireMemoryTest, AHugeShapeTakesNoMemory) {
  v1::QuantizeRequest request = Request(1);
  for (int i = 0; i < (1 << 20); ++i) request.mutable_x()->add_shape(1);
  for (int i = 0; i < (1 << 20); ++i) request.add_block_shape(1);
  const Cost cost = CostOfDecoding(Slices(request.SerializeAsString(), 8192), false);
  EXPECT_LT(cost.peak_bytes, 16u << 10);
}

TEST(WireMemoryTest, IntegerValuesTakeAFewTimesTheirBytes) {
  v1::QuantizeRequest request = Request(1);
  v1::Tensor& zero_point = *request.mutable_zero_point();
  zero_point.set_data_type(v1::DATA_TYPE_UINT8);
  zero_point.add_shape(1 << 20);
  for (int i = 0; i < (1 << 20); ++i) zero_point.mutable_int_values()->add_values(i % 100);
  const std::string bytes = request.SerializeAsString();
  EXPECT_LT(CostOfDecoding(Slices(bytes, 8192), true).peak_bytes, 6 * bytes.size());
  // In as many pieces as a writer can make of them: 2 bytes of an unpacked value.
  std::string pieces;
  for (int i = 0; i < (1 << 20); ++i) pieces += "\x08\x01";
  zero_point.clear_int_values();
  const std::string message =
      request.SerializeAsString() + Field(3, Field(5, pieces));  // zero_point.int_values
  EXPECT_LT(CostOfDecoding(Slices(message, 8192), true).peak_bytes, 10 * message.size());
}

// The same few bytes of contents, again and again.
TEST(WireMemoryTest, RepeatedContentsTakeNoMemory) {
  std::string message = Request(1).SerializeAsString();
  const std::string raw("\x0a\x06\x1a\x04zzzz", 8);
  const std::string floats("\x0a\x08\x22\x06\x0a\x04zzzz", 10);
  const std::string integers("\x0a\x05\x2a\x03\x0a\x01z", 7);
  for (int i = 0; i < 100'000; ++i) message += floats + integers + raw;
  const Cost cost = CostOfDecoding(Slices(message, 8192), true);
  EXPECT_LT(cost.peak_bytes, 64u << 10);
}

TEST(WireMemoryTest, TinySlicesAreJoined) {
  const std::string bytes = Request(1 << 16).SerializeAsString();
  std::vector<grpc::Slice> slices;
  for (char byte : bytes) slices.emplace_back(&byte, 1);
  const absl::StatusOr<SliceList> message =
      SliceList::Take(grpc::ByteBuffer(slices.data(), slices.size()));
  EXPECT_LT(CostOfDecoding(*message, true).peak_bytes, 16u << 10);
}

TEST(WireMemoryTest, AnswersAreNotCopied) {
  AnswerLayout layout;
  layout.y = {DataType::kUint8, {64 << 20}, 64 << 20, 64 << 20};
  const Cost cost = Measure([&] {
    Answer answer(layout);
    const grpc::ByteBuffer buffer = std::move(answer).FinishItem(1);
  });
  EXPECT_LT(cost.peak_bytes, layout.y.bytes + 8192);
}

}  // namespace
}  // namespace quantd::wire
