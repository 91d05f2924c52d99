# server/net: listening sockets. Uses the client of the tests of HTTP.
add_executable(net_test net/listen_test.cc net/peer_name_test.cc http/peer.cc)
target_link_libraries(net_test PRIVATE quantd::net quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(net_test server.net 60)
