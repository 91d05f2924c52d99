# server/trace: which calls are traced, and their spans.
add_executable(trace_test trace/context_test.cc trace/tracer_test.cc)
target_link_libraries(trace_test PRIVATE quantd::trace nlohmann_json::nlohmann_json quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(trace_test server.trace 120)
