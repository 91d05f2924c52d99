# server/access: TLS and tokens.
find_package(OpenSSL 3.0 REQUIRED)
add_executable(access_test
  access/certificates_test.cc access/file_watch_test.cc access/handshake_limit_test.cc access/hostile_session_test.cc
  access/session_test.cc access/testing.cc access/tokens_test.cc)
target_link_libraries(access_test PRIVATE quantd::access quantd_build OpenSSL::SSL OpenSSL::Crypto GTest::gmock_main Threads::Threads)
quantd_cases(access_test server.access 120)
