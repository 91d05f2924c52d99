// What a call has reserved at every stage: while it waits for a core, while it computes, and while
// its response is unread. Exact, to the byte.
#include "server/operations/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "malloced.h"
#include "memory_testing.h"
#include "server/operations/operation.h"
#include "server/operations/scratch_bytes.h"
#include "server/transport/deflater.h"
#include "server/transport/server_call.h"
#include "server/wire/response_layout.h"

namespace quantd::rpc {
namespace {

using ::testing::HasSubstr;

// What the server calculates for a request: the memory that it asks for, what computing takes, and
// what is left for the response.
struct Needs {
  explicit Needs(const v1::QuantizeRequest& request) : message(request.SerializeAsString()) {
    decoded = *wire::DecodeRequest(wire::Method::kQuantize, View(message));
    // Scales in shared memory are copied.
    for (const wire::SharedTensor& place : decoded.shared) {
      copy = Floats({static_cast<int64_t>(place.reference.byte_size / sizeof(float))}).raw_data();
      wire::TensorOf(decoded, place.field).bytes = View(copy);
    }
    uint64_t here = memory::Pool::Footprint(message.size()) + copy.size();
    for (const std::vector<uint8_t>& values : decoded.packed) here += values.size();
    asked = here + operations::MemoryBound(decoded);
    const operations::Operation operation = *operations::Plan(decoded);
    computing = here + operation.memory_bytes();
    response = wire::ResponseMemoryBytes(operation.response_layout());
  }
  std::string message;
  std::string copy;
  wire::Request decoded;
  uint64_t asked = 0;
  uint64_t computing = 0;
  uint64_t response = 0;
};

// Values are packed before they are quantized; until then, both exist.
TEST_F(Memory, OfACall) {
  int32_t id = -1;
  int calls = 0;
  for (const bool values : {false, true}) {
    for (const int64_t elements : {int64_t{10}, int64_t{1'000}, kLong}) {
      const v1::QuantizeRequest request =
          Quantize(values ? FloatValues({elements}) : Floats({elements}));
      const Needs needs(request);
      if (values) {
        ASSERT_GE(needs.computing, 2 * 4 * static_cast<uint64_t>(elements));
      }
      id += 2;
      gate_.Close();
      Begin(id, "Quantize");
      Send(*client_, id, request);
      ASSERT_TRUE(gate_.Reached(++calls));
      EXPECT_TRUE(Bytes(needs.computing));
      EXPECT_EQ(server_->Metric(kRequests), 1);
      gate_.Open();
      EXPECT_TRUE(Bytes(needs.response));
      // A call whose response is unread does not count as an active request.
      EXPECT_TRUE(server_->Until(kRequests, 0));
      client_->Say(transport::Rst(id));
      EXPECT_TRUE(client_->Heard());
      EXPECT_TRUE(Bytes(0));
    }
  }
}

// Only the response is left: the plan, with scales converted from another type, is gone by then.
TEST_F(Memory, OfAResponseThatIsUnread) {
  constexpr int64_t kElements = 100'000;
  v1::QuantizeRequest request = Quantize(Floats({kElements}));
  request.set_axis(0);
  v1::Tensor& scale = *request.mutable_scale();
  scale.clear_raw_data();
  scale.set_data_type(v1::DATA_TYPE_FLOAT16);
  scale.add_shape(kElements);
  for (int64_t i = 0; i < kElements; ++i) absl::StrAppend(scale.mutable_raw_data(), "\x80<");
  const Needs needs(request);
  Begin(1, "Quantize");
  Send(*client_, 1, request);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(needs.response));
  const uint64_t unread = MallocedBytes();
  client_->Say(transport::Rst(1));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(Bytes(0));
  EXPECT_LT(unread, MallocedBytes() + needs.response + 64 * kKiB);
}

// Compressing takes additional memory until it is done; the compressed response takes as much as a
// plain one.
TEST_F(Memory, OfACallWhoseResponseIsCompressed) {
  const v1::QuantizeRequest request = Quantize(Floats({100'000}));
  const Needs needs(request);
  const uint64_t more = transport::DeflateMemoryBytes(
      wire::MaxEncodedBytes(operations::Plan(needs.decoded)->response_layout()),
      transport::kPrefixBytes);
  const auto begin = [this](int32_t id) {
    client_->Say(transport::Headers(
        id, transport::CallFields(Path("Quantize"), {{"grpc-accept-encoding", "gzip"},
                                                     {"quantd-compress-answers", "gzip"}})));
  };
  gate_.Close();
  begin(1);
  Send(*client_, 1, request);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(needs.computing + more));
  gate_.Open();
  EXPECT_TRUE(server_->Until("quantd_compressed_answers_total{encoding=\"gzip\"}", 1));
  EXPECT_TRUE(Bytes(needs.response));
  client_->Say(transport::Rst(1));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(Bytes(0));
  // A response that is too small to be compressed.
  const v1::QuantizeRequest small = Quantize(Floats({100}));
  gate_.Close();
  begin(3);
  Send(*client_, 3, small);
  ASSERT_TRUE(gate_.Reached(2));
  EXPECT_TRUE(Bytes(Needs(small).computing));
}

// What a failed call still holds while its client does not read the error.
TEST_F(Memory, OfAnItemThatFails) {
  v1::StreamRequest item;
  v1::DynamicQuantizeRequest& request = *item.mutable_dynamic_quantize();
  *request.mutable_x() = Floats({kLong}, std::numeric_limits<float>::quiet_NaN());
  Begin(1, "Stream");
  Send(*client_, 1, item, false);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(4 * kKiB));
  EXPECT_TRUE(server_->Until(kRequests, 0));
}

// Shared memory is not the server's, but its copy of the values that choose the kernel is.
TEST_F(Memory, OfACallWithItsScalesInSharedMemory) {
  constexpr int64_t kElements = 100'000;
  const std::string folder = absl::StrCat(testing::TempDir(), "/quantd_rpc_memory_", getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  std::ofstream(folder + "/scales") << Floats({kElements}).raw_data();
  Restart({"--shared_memory_dir=" + folder});
  v1::QuantizeRequest request = Quantize(Floats({kElements}));
  request.set_axis(0);
  v1::Tensor& scale = *request.mutable_scale();
  scale.add_shape(kElements);
  scale.mutable_shared_memory()->set_region("scales");
  scale.mutable_shared_memory()->set_byte_size(kElements * sizeof(float));
  const Needs needs(request);
  gate_.Close();
  Begin(1, "Quantize");
  Send(*client_, 1, request);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(needs.computing));
  gate_.Open();
  EXPECT_TRUE(Bytes(needs.response));
  client_->Say(transport::Rst(1));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(Bytes(0));
  unlink((folder + "/scales").c_str());
  rmdir(folder.c_str());
}

TEST_F(Memory, OfAnItem) {
  v1::StreamRequest item;
  *item.mutable_quantize() = Quantize(Floats({kLong}));
  const Needs needs(item.quantize());
  const uint64_t envelope =
      memory::Pool::Footprint(item.ByteSizeLong()) - memory::Pool::Footprint(needs.message.size());
  gate_.Close();
  Begin(1, "Stream");
  Send(*client_, 1, item, false);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(needs.computing + envelope));
  // The next item is computed while the response is unread.
  Send(*client_, 1, item, false);
  gate_.Pass();
  ASSERT_TRUE(gate_.Reached(2));
  EXPECT_TRUE(Bytes(needs.response + needs.computing + envelope));
  gate_.Open();
  EXPECT_TRUE(Bytes(2 * needs.response));
  client_->Say(transport::Rst(1));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(Bytes(0));
}

TEST_F(Memory, OfACallThatWaitsForACore) {
  gate_.Close();
  const double before = TakeBothCores();
  const v1::QuantizeRequest request = Quantize(Floats({kLong}));
  Begin(1, "Quantize");
  Send(*client_, 1, request);
  WaitsWith(before, Needs(request).asked);
}

// Before a call is decoded: the parser's memory, and the widest response that a byte can become,
// but no larger one than two of the largest messages.
struct Late {
  const char* name;
  bool is_item;
  bool compressed;
  uint64_t most;  // --max_message_bytes; 0: large enough
};
class MemoryLate : public Memory, public testing::WithParamInterface<Late> {};

TEST_P(MemoryLate, OfACallThatIsDecodedLate) {
  const Late& late = GetParam();
  if (late.most != 0) Restart({absl::StrCat("--max_message_bytes=", late.most)});
  gate_.Close();
  const double before = TakeBothCores();
  v1::StreamRequest item;
  *item.mutable_quantize() = Quantize(FloatValues({kLong}));
  const std::string message =
      late.is_item ? item.SerializeAsString() : item.quantize().SerializeAsString();
  const auto method = late.is_item ? wire::Method::kStream : wire::Method::kQuantize;
  uint64_t response = 18 * message.size();
  if (late.most != 0) {
    ASSERT_GT(response, 2 * late.most);
    response = 2 * late.most;
  }
  transport::Fields more;
  if (late.compressed) {
    more = {{"grpc-accept-encoding", "deflate"}, {"quantd-compress-answers", "deflate"}};
  }
  client_->Say(transport::Headers(
      1, transport::CallFields(Path(late.is_item ? "Stream" : "Quantize"), more)));
  SendBytes(*client_, 1, message);
  WaitsWith(
      before,
      memory::Pool::Footprint(message.size()) +
          wire::DecodeMemoryBytes(wire::RestOf(method, View(message))) + response +
          operations::ScratchBytes(0) +
          (late.compressed ? transport::DeflateMemoryBytes(response, transport::kPrefixBytes) : 0));
}

INSTANTIATE_TEST_SUITE_P(Calls, MemoryLate,
                         testing::Values(Late{"Unary", false, false, 0},
                                         Late{"Compressed", false, true, 0},
                                         Late{"Large", false, false, 8 << 20},
                                         Late{"Item", true, false, 0}),
                         [](const auto& late) { return late.param.name; });

// If an item is refused before it is decoded, its id is still known.
TEST_F(Memory, OfALargeItemThatHasNoPlace) {
  Restart({"--memory_budget_bytes=1000000"});
  client_ = server_->Connect();
  v1::StreamRequest item;
  item.set_id(uint64_t{1} << 60);
  *item.mutable_quantize() = Quantize(FloatValues({kLong}));
  Begin(1, "Stream");
  Send(*client_, 1, item);
  EXPECT_EQ(client_->Status(1), 0);
  const auto responses = client_->stream(1).Messages();
  ASSERT_TRUE(responses.has_value() && responses->size() == 1);
  v1::StreamResponse response;
  ASSERT_TRUE(response.ParseFromString(responses->at(0)));
  EXPECT_EQ(response.id(), item.id());
  EXPECT_EQ(response.error().code(), 8);
}

// A response that is wider than anything foreseen: values of two bits each.
TEST_F(Memory, OfACallThatTurnsOutToNeedMore) {
  v1::DequantizeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_UINT2);
  request.mutable_x()->add_shape(400'000);
  request.mutable_x()->set_raw_data(std::string(100'000, '\1'));
  *request.mutable_scale() = FloatValues({});
  request.set_output_encoding(v1::TENSOR_ENCODING_VALUES);
  client_ = server_->Connect();
  ASSERT_EQ(Call(*client_, 1, "Dequantize", request), 0);
  // Too many unknown fields to look at before it is decoded.
  v1::FloatValues& values = *request.mutable_scale()->mutable_float_values();
  values.GetReflection()->MutableUnknownFields(&values)->AddLengthDelimited(
      1'000, std::string(2'000, 'x'));
  EXPECT_EQ(Call(*client_, 3, "Dequantize", request), 8);
  EXPECT_THAT(client_->stream(3).Trailer("grpc-message"),
              HasSubstr("send its tensors as raw_data"));
  EXPECT_TRUE(Bytes(0));
}

// Not under sanitizers, which need address space of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
rlim_t AddressSpace() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// A response in values takes more memory than its kernel. If the system does not have it, one call
// ends. In a process of its own.
TEST(MemoryDeathTest, ThatTheSystemDoesNotHaveForValues) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [](bool is_item) {
    const TestServer server;
    const auto client = server.Connect();
    v1::StreamRequest item;
    v1::QuantizeRequest& request = *item.mutable_quantize();
    request = Quantize(Floats({9 << 20}));
    request.set_output_encoding(v1::TENSOR_ENCODING_VALUES);
    Gate gate;
    gate.Close();
    client->Say(transport::CallHead(1, Path(is_item ? "Stream" : "Quantize")));
    is_item ? Send(*client, 1, item) : Send(*client, 1, request);
    if (!gate.Reached(1)) std::exit(1);
    rlimit before = {};
    getrlimit(RLIMIT_AS, &before);
    const rlimit little = {AddressSpace() + (8 << 20), before.rlim_max};
    setrlimit(RLIMIT_AS, &little);
    gate.Open();
    const int status = client->Status(1);
    setrlimit(RLIMIT_AS, &before);
    if (status != (is_item ? 0 : 8)) std::exit(2);
    std::exit(Call(*client, 3, "Quantize", request) == 0 ? 0 : 3);
  };
  EXPECT_EXIT(run(false), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(run(true), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace quantd::rpc
