# server/metrics: counters and histograms, as Prometheus reads them.
add_executable(metrics_test metrics/metrics_test.cc)
target_link_libraries(metrics_test PRIVATE quantd::metrics quantd_build GTest::gmock_main Threads::Threads)
gtest_discover_tests(metrics_test TEST_PREFIX server.metrics. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 60)
