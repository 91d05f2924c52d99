# server/transport: against frames made by hand.
add_library(transport_testing STATIC transport/client.cc transport/world.cc)
target_include_directories(transport_testing PUBLIC transport)
target_link_libraries(transport_testing PUBLIC quantd::transport GTest::gtest Threads::Threads PRIVATE ${NGHTTP2_LIBRARY} quantd_build)

add_executable(transport_test
  transport/compression_test.cc transport/deflater_test.cc transport/ending_test.cc transport/flow_control_test.cc
  transport/http2_test.cc transport/in_place_test.cc transport/lifetime_test.cc transport/parts_test.cc
  transport/random_test.cc transport/inflater_test.cc transport/receiving_test.cc transport/sending_test.cc transport/transport_test.cc)
target_link_libraries(transport_test PRIVATE transport_testing ZLIB::ZLIB quantd_build GTest::gmock_main)
quantd_cases(transport_test server.transport 60)
