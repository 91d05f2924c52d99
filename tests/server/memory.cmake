# server/memory: the limit of memory, and how it is divided. Uses the wire's test helpers (wire.cmake).
add_executable(memory_test memory/buffer_test.cc memory/container_test.cc memory/shares_test.cc)
target_link_libraries(memory_test PRIVATE quantd::loop quantd::memory wire_testing quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(memory_test server.memory 60)
