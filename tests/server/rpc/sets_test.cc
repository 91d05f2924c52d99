// A request that names a stored set on the disk: the call waits for it, once, whatever happens to
// the call.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "quantd/v1/parameters.pb.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

class Sets : public testing::Test {
 protected:
  Sets() {
    std::filesystem::create_directory(folder_);
    const TestServer server({Flag()});
    const auto client = server.Connect();
    v1::PutParametersRequest put;
    put.set_name("halves");
    *put.mutable_parameters()->mutable_quantize()->mutable_scale() = Floats({}, 0.5F);
    client->Say(transport::CallHead(1, "/quantd.v1.ParametersService/PutParameters"));
    Send(*client, 1, put);
    EXPECT_EQ(client->Status(1), 0);
    v1::PutParametersResponse response;
    EXPECT_TRUE(response.ParseFromString(client->stream(1).Messages()->at(0)));
    request_.set_parameters(response.reference());
    *request_.mutable_x() = Floats({400'000});
  }
  ~Sets() override { std::filesystem::remove_all(folder_); }

  std::string Flag() const { return "--parameters_dir=" + folder_; }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/quantd_rpc_sets_", getpid());
  v1::QuantizeRequest request_;
};

TEST_F(Sets, AreFoundOnTheDiskAndThenInMemory) {
  const TestServer server({Flag()});
  const auto client = server.Connect();
  for (const int32_t id : {1, 3}) {
    ASSERT_EQ(Call(*client, id, "Quantize", request_), 0);
    v1::QuantizeResponse response;
    ASSERT_TRUE(response.ParseFromString(client->stream(id).Messages()->at(0)));
    EXPECT_EQ(response.y().raw_data(), std::string(400'000, '\2'));
    EXPECT_EQ(response.parameters(), request_.parameters());
  }
  request_.set_parameters("nobody");
  EXPECT_EQ(Call(*client, 5, "Quantize", request_), 5);
}

// The name is not searched for behind more fields than the leading thread looks at.
TEST_F(Sets, AreNotNamedBehindManyFields) {
  const TestServer server({Flag()});
  const auto client = server.Connect();
  std::string fields;
  for (int i = 0; i < 1'000; ++i) fields += "\x78\x01";
  for (const int times : {1, 2, 10}) {
    const int32_t id = 2 * times + 1;
    client->Say(transport::CallHead(id, Path("Quantize")));
    std::string message = request_.SerializeAsString();
    for (int i = 0; i < times; ++i) message.insert(0, fields);
    SendBytes(*client, id, message);
    EXPECT_EQ(client->Status(id), times == 1 ? 0 : 3);
    if (times != 1) {
      EXPECT_EQ(client->stream(id).Trailer("grpc-message"),
                "parameters is set, but the message has more than 1024 fields");
    }
  }
}

TEST_F(Sets, ACallThatIsGivenUpAfterwardsIsOverOnce) {
  const TestServer server({Flag()});
  const auto client = server.Connect();
  Gate gate;
  gate.Close();
  client->Say(transport::CallHead(1, Path("Quantize")));
  Send(*client, 1, request_);
  ASSERT_TRUE(gate.Reached(1));
  client->Say(transport::Rst(1));
  EXPECT_TRUE(client->Heard());
  gate.Open();
  EXPECT_TRUE(server.Until("quantd_calls", 0));
  EXPECT_TRUE(server.Until("quantd_inflight_bytes", 0));
  EXPECT_EQ(Call(*client, 3, "Quantize", request_), 0);
}

}  // namespace
}  // namespace quantd::rpc
