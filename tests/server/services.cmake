# server/services and the router, in a whole server. Uses the transport's client (transport.cmake).
add_executable(services_test services/services_test.cc)
target_link_libraries(services_test PRIVATE quantd::server transport_testing quantd_build GTest::gmock_main)
quantd_cases(services_test server.services 60)
