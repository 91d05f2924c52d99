# server/http: valid and invalid requests, and a server in this process with peers that misbehave.
add_executable(http_test http/hostile_tls_test.cc http/http_test.cc http/peer.cc http/request_reader_test.cc access/testing.cc)
target_link_libraries(http_test PRIVATE quantd::http quantd_build OpenSSL::SSL OpenSSL::Crypto GTest::gmock_main Threads::Threads)
quantd_cases(http_test server.http 60)
