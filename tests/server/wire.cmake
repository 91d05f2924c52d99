# server/wire: decoding, responses, errors.
add_library(wire_testing STATIC wire/message_generator.cc wire/request_generator.cc wire/wire_testing.cc)
target_include_directories(wire_testing PUBLIC wire)
target_link_libraries(wire_testing PUBLIC quantd::wire PRIVATE quantd_build)

add_executable(wire_test
  wire/encode_test.cc wire/decode_test.cc wire/differential_test.cc wire/method_test.cc wire/scan_test.cc wire/split_test.cc
  wire/status_details_test.cc wire/utf8_test.cc wire/writer_test.cc)
target_link_libraries(wire_test PRIVATE wire_testing quantd_build GTest::gmock_main)
quantd_cases(wire_test server.wire 300)

add_library(counted_memory STATIC wire/counted_memory.cc)
target_include_directories(counted_memory PUBLIC wire)
target_link_libraries(counted_memory PRIVATE quantd_build)

add_executable(wire_memory_test wire/memory_test.cc)
target_link_libraries(wire_memory_test PRIVATE counted_memory wire_testing quantd_build GTest::gmock_main)
quantd_cases(wire_memory_test server.wire 120)
