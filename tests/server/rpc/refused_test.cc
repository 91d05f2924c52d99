// What is left of a request that is refused, or ends, before it is computed.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "malloced.h"
#include "memory_testing.h"

namespace quantd::rpc {
namespace {

using Refused = Memory;

// Not before memory for them is known to be free. Its many fields make it decoded late.
TEST_F(Refused, ItsTensorsInSharedMemoryAreNotCopied) {
  constexpr int64_t kElements = 4'000'000;
  const std::string folder = absl::StrCat(testing::TempDir(), "/quantd_rpc_copied_", getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  std::ofstream(folder + "/scales") << Floats({kElements}).raw_data();
  Restart({"--shared_memory_dir=" + folder});
  v1::QuantizeRequest request = Quantize(Floats({1}));
  v1::Tensor& scale = *request.mutable_scale();
  scale.clear_raw_data();
  scale.add_shape(kElements);
  scale.mutable_shared_memory()->set_region("scales");
  scale.mutable_shared_memory()->set_byte_size(kElements * sizeof(float));
  std::string message = request.SerializeAsString();
  for (int i = 0; i < 700; ++i) message += "\x38\x01";  // saturate
  Begin(1, "Quantize");
  SendBytes(*client_, 1, message);
  EXPECT_EQ(client_->Status(1), static_cast<int>(absl::StatusCode::kResourceExhausted));
  unlink((folder + "/scales").c_str());
  rmdir(folder.c_str());
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
      Begin(1 + 2 * streams, "Stream");
      Send(*client_, 1 + 2 * streams, good, false);
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
  Begin(1, "Quantize");
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

}  // namespace
}  // namespace quantd::rpc
