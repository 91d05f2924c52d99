# server/trace: which calls are traced, and their spans.
add_executable(trace_test trace/context_test.cc trace/tracer_test.cc)
target_link_libraries(trace_test PRIVATE quantd::trace nlohmann_json::nlohmann_json quantd_build GTest::gtest_main Threads::Threads)
gtest_discover_tests(trace_test TEST_PREFIX server.trace. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 120)
