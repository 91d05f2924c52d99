# server/mailbox: a queue between threads.
add_executable(mailbox_test mailbox/mailbox_test.cc)
target_include_directories(mailbox_test PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(mailbox_test PRIVATE quantd_build GTest::gtest_main Threads::Threads)
gtest_discover_tests(mailbox_test TEST_PREFIX server.mailbox. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 60)
