// A drain waits for calls that compute: every call that has begun is answered correctly.
#include <gtest/gtest.h>

#include <thread>

#include "testing.h"

namespace quantd::rpc {
namespace {

TEST(Drain, WhatComputesIsAnswered) {
  TestServer server;
  const auto client = server.Connect();
  Gate gate;
  gate.Close();
  // Long ones on both cores, so that the loop stays free to send the GOAWAY.
  const v1::QuantizeRequest request = Quantize(Floats({400'000}, 5));
  client->Say(transport::CallHead(1, Path("Quantize")));
  Send(*client, 1, request);
  v1::StreamRequest item;
  item.set_id(9);
  *item.mutable_quantize() = request;
  client->Say(transport::CallHead(3, Path("Stream")));
  Send(*client, 3, item, false);
  ASSERT_TRUE(gate.Reached(2));

  std::thread drain([&] { server.Drain(); });
  EXPECT_TRUE(client->Until([&] { return !client->gone_away().empty(); }));
  EXPECT_TRUE(server.Until("quantd_draining", 1));
  EXPECT_EQ(server.Metric("quantd_calls"), 2);
  gate.Open();
  EXPECT_EQ(client->Status(1), 0);
  EXPECT_EQ(client->Status(3), 14);  // it takes no further item
  v1::QuantizeResponse response;
  const auto responses = client->stream(1).Messages();
  ASSERT_TRUE(responses.has_value() && responses->size() == 1);
  ASSERT_TRUE(response.ParseFromString(responses->at(0)));
  EXPECT_EQ(response.y().raw_data(), std::string(400'000, '\5'));
  v1::StreamResponse item_response;
  const auto items = client->stream(3).Messages();
  ASSERT_TRUE(items.has_value() && items->size() == 1);
  ASSERT_TRUE(item_response.ParseFromString(items->at(0)));
  EXPECT_EQ(item_response.id(), 9);
  EXPECT_EQ(item_response.quantize().y().raw_data(), response.y().raw_data());
  client->Until([&] { return client->closed(); });
  drain.join();
}

}  // namespace
}  // namespace quantd::rpc
