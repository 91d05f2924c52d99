// What a call has reserved at every stage: while it waits for a core, while it computes, and while
// its response is unread. Exact, to the byte. And what is left of one that is refused.
#include "server/operations/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "malloced.h"
#include "server/operations/operation.h"
#include "server/operations/scratch_bytes.h"
#include "server/transport/encoding.h"
#include "server/transport/server_call.h"
#include "server/wire/decode.h"
#include "server/wire/response_layout.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

using ::testing::HasSubstr;

constexpr char kBytes[] = "quantd_inflight_bytes";
constexpr char kRequests[] = "quantd_inflight_requests";
constexpr char kQueued[] = "quantd_queued_requests";
constexpr uint64_t kKiB = 1024;
constexpr int64_t kLong = 400'000;  // elements whose work takes a core

wire::BytesView View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// A server, the bytes that it reports for its calls, and a gate at which they can be inspected.
class Memory : public testing::Test {
 protected:
  bool Bytes(uint64_t expected) const {
    return server_->Until(kBytes, static_cast<double>(expected));
  }
  // The client does not want the call's response any more.
  void Cancel(int32_t id) {
    client_->Say(transport::Rst(id));
    EXPECT_TRUE(client_->Heard());
  }
  // Occupies both cores, and returns what these calls hold.
  double TakeBothCores() {
    other_ = server_->Connect();
    for (const int32_t id : {1, 3}) Begin(*other_, id, "Quantize", Quantize(Floats({kLong})));
    EXPECT_TRUE(gate_.Reached(2));
    EXPECT_TRUE(server_->Until("quantd_busy_cores", 2));
    return server_->Metric(kBytes);
  }
  // Expects that the waiting call holds `expected` more; then it is cancelled.
  void WaitsWith(double before, uint64_t expected) {
    EXPECT_TRUE(server_->Until(kQueued, 1));
    EXPECT_EQ(server_->Metric(kBytes) - before, static_cast<double>(expected));
    Cancel(1);
    EXPECT_TRUE(server_->Until(kQueued, 0));
    EXPECT_TRUE(server_->Until(kBytes, before));
    EXPECT_EQ(server_->Metric("quantd_busy_cores"), 2);
    gate_.Open();
    for (const int32_t id : {1, 3}) EXPECT_EQ(other_->Status(id), 0);
    EXPECT_TRUE(server_->Until("quantd_busy_cores", 0));
    EXPECT_TRUE(Bytes(0));
  }

  void Restart(const std::vector<std::string>& flags) {
    client_.reset();
    server_ = std::make_unique<TestServer>(flags);
    client_ = server_->Connect(0);
  }
  // Restarts the server with a region of shared memory, and returns a scale in it.
  v1::Tensor RestartWithSharedScale(int64_t elements) {
    const std::string folder = absl::StrCat(testing::TempDir(), "/quantd_rpc_memory_", getpid());
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/scales") << Floats({elements}).raw_data();
    Restart({"--shared_memory_dir=" + folder});
    v1::Tensor scale;
    scale.set_data_type(v1::DATA_TYPE_FLOAT);
    scale.add_shape(elements);
    scale.mutable_shared_memory()->set_region("scales");
    scale.mutable_shared_memory()->set_byte_size(elements * sizeof(float));
    return scale;
  }
  void TearDown() override {
    std::filesystem::remove_all(absl::StrCat(testing::TempDir(), "/quantd_rpc_memory_", getpid()));
  }

  std::unique_ptr<TestServer> server_ = std::make_unique<TestServer>();
  // Its windows let nothing of the responses through: they stay in the server.
  std::unique_ptr<transport::Client> client_ = server_->Connect(0);
  std::unique_ptr<transport::Client> other_;
  Gate gate_;
};

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

// A response that is not small is compressed. Shared memory is not the server's, but its copy of
// the values that choose the kernel is.
TEST_F(Memory, OfACall) {
  constexpr int64_t kElements = 100'000;
  v1::QuantizeRequest with_shared_scale = Quantize(Floats({kElements}));
  with_shared_scale.set_axis(0);
  *with_shared_scale.mutable_scale() = RestartWithSharedScale(kElements);
  struct Row {
    v1::QuantizeRequest request;
    bool accepts_gzip = false;
    bool compressed = false;
  };
  int32_t id = -1;
  int calls = 0;
  int compressed = 0;
  for (const auto& [request, accepts_gzip, is_compressed] :
       {Row{Quantize(Floats({10}))}, Row{Quantize(Floats({1'000}))}, Row{Quantize(Floats({kLong}))},
        Row{Quantize(FloatValues({10}))}, Row{Quantize(FloatValues({1'000}))},
        Row{Quantize(FloatValues({kLong}))}, Row{with_shared_scale},
        Row{Quantize(Floats({kElements})), true, true}, Row{Quantize(Floats({100})), true}}) {
    const Needs needs(request);
    if (request.x().has_float_values()) {
      // Values are packed before they are quantized; until then, both exist.
      ASSERT_GE(needs.computing, 2 * 4 * static_cast<uint64_t>(request.x().shape(0)));
    }
    id += 2;
    gate_.Close();
    client_->Say(QuantizeHead(id, accepts_gzip));
    Send(*client_, id, request);
    ASSERT_TRUE(gate_.Reached(++calls));
    // Compressing takes additional memory until it is done.
    const uint64_t response =
        wire::MaxEncodedBytes(operations::Plan(needs.decoded)->response_layout());
    const uint64_t more =
        is_compressed ? transport::DeflateMemoryBytes(response, transport::kPrefixBytes) : 0;
    EXPECT_TRUE(Bytes(needs.computing + more));
    EXPECT_EQ(server_->Metric(kRequests), 1);
    gate_.Open();
    // The compressed response takes as much as a plain one.
    EXPECT_TRUE(Bytes(needs.response));
    compressed += is_compressed ? 1 : 0;
    EXPECT_EQ(server_->Metric("quantd_compressed_answers_total{encoding=\"gzip\"}"), compressed);
    // A call whose response is unread does not count as an active request.
    EXPECT_TRUE(server_->Until(kRequests, 0));
    Cancel(id);
    EXPECT_TRUE(Bytes(0));
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
  Begin(*client_, 1, "Quantize", request);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(needs.response));
  const uint64_t unread = MallocedBytes();
  Cancel(1);
  EXPECT_TRUE(Bytes(0));
  EXPECT_LT(unread, MallocedBytes() + needs.response + 64 * kKiB);
}

// What a failed call still holds while its client does not read the error.
TEST_F(Memory, OfAnItemThatFails) {
  v1::StreamRequest item;
  v1::DynamicQuantizeRequest& request = *item.mutable_dynamic_quantize();
  *request.mutable_x() = Floats({kLong}, std::numeric_limits<float>::quiet_NaN());
  Begin(*client_, 1, "Stream", item, false);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(4 * kKiB));
  EXPECT_TRUE(server_->Until(kRequests, 0));
}

TEST_F(Memory, OfAnItem) {
  v1::StreamRequest item;
  *item.mutable_quantize() = Quantize(Floats({kLong}));
  const Needs needs(item.quantize());
  const uint64_t envelope =
      memory::Pool::Footprint(item.ByteSizeLong()) - memory::Pool::Footprint(needs.message.size());
  gate_.Close();
  Begin(*client_, 1, "Stream", item, false);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(needs.computing + envelope));
  // The next item is computed while the response is unread.
  Send(*client_, 1, item, false);
  gate_.Pass();
  ASSERT_TRUE(gate_.Reached(2));
  EXPECT_TRUE(Bytes(needs.response + needs.computing + envelope));
  gate_.Open();
  EXPECT_TRUE(Bytes(2 * needs.response));
  Cancel(1);
  EXPECT_TRUE(Bytes(0));
}

TEST_F(Memory, OfACallThatWaitsForACore) {
  gate_.Close();
  const double before = TakeBothCores();
  const v1::QuantizeRequest request = Quantize(Floats({kLong}));
  Begin(*client_, 1, "Quantize", request);
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
  Begin(*client_, 1, "Stream", item);
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

using Refused = Memory;

// Not before memory for them is known to be free. Its many fields make it decoded late.
TEST_F(Refused, ItsTensorsInSharedMemoryAreNotCopied) {
  v1::QuantizeRequest request = Quantize(Floats({1}));
  *request.mutable_scale() = RestartWithSharedScale(4'000'000);
  std::string message = request.SerializeAsString();
  for (int i = 0; i < 700; ++i) message += "\x38\x01";  // saturate
  client_->Say(transport::CallHead(1, Path("Quantize")));
  SendBytes(*client_, 1, message);
  EXPECT_EQ(client_->Status(1), static_cast<int>(absl::StatusCode::kResourceExhausted));
}

// Also while its refusal waits behind a response that nobody reads.
TEST_F(Refused, AnItemLeavesNothing) {
  constexpr int kStreams = 20;
  v1::StreamRequest good, refused;
  *good.mutable_quantize() = Quantize(Floats({1'000}));
  *refused.mutable_quantize() = Quantize(Floats({25'000}));
  refused.mutable_quantize()->clear_scale();
  int streams = 0;
  const auto hold = [&] {
    for (int i = 0; i < kStreams; ++i, ++streams) {
      Begin(*client_, 1 + 2 * streams, "Stream", good, false);
      Send(*client_, 1 + 2 * streams, refused, false);
    }
    EXPECT_TRUE(gate_.Reached(streams));
    EXPECT_TRUE(client_->Heard());  // all of them have arrived
  };
  // All responses together are smaller than one refused item.
  const auto refusals = [&] { return server_->Metric(kBytes) < 100'000; };
  hold();  // whatever is allocated once, such as the arenas of threads, is there now
  EXPECT_TRUE(client_->Until(refusals));
  const uint64_t before = MallocedBytes();
  hold();
  EXPECT_TRUE(client_->Until(refusals));
  const uint64_t most = before + kStreams * 12 * kKiB;  // and not 100 KB more
  EXPECT_TRUE(client_->Until([&] { return MallocedBytes() <= most; })) << MallocedBytes() - most;
}

TEST_F(Refused, ACallThatIsCancelledWithItsLastByteDoesNotWait) {
  Restart({"--queue_timeout=300"});
  gate_.Close();
  const double before = TakeBothCores();
  const std::string message = Quantize(FloatValues({1'600})).SerializeAsString();
  client_->Say(transport::CallHead(1, Path("Quantize")));
  EXPECT_TRUE(client_->Heard());
  client_->Say(transport::Data(1, transport::Prefixed(message), true) + transport::Rst(1));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(server_->Until(
      "grpc_server_handled_total{grpc_type=\"unary\",grpc_service="
      "\"quantd.v1.QuantizationService\",grpc_method=\"Quantize\",grpc_code=\"Canceled\"}",
      1));
  EXPECT_EQ(server_->Metric(kQueued), 0);
  EXPECT_EQ(server_->Metric(kBytes), before);
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
    is_item ? Begin(*client, 1, "Stream", item) : Begin(*client, 1, "Quantize", request);
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
