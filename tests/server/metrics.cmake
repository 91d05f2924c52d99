# server/metrics: counters and histograms, as Prometheus reads them.
add_executable(metrics_test metrics/metrics_test.cc)
target_link_libraries(metrics_test PRIVATE quantd::metrics quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(metrics_test server.metrics 60)
