# server/trace: which calls are traced, and the export of spans to a collector.
add_executable(trace_test trace/context_test.cc trace/endpoint_test.cc trace/environment_test.cc trace/otlp_test.cc trace/tracer_test.cc)
target_link_libraries(trace_test PRIVATE quantd::trace quantd::wire quantd_build GTest::gmock_main Threads::Threads)
gtest_discover_tests(trace_test TEST_PREFIX server.trace. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 120)
