# server/admission: permits and their queue.
add_executable(admission_test admission/admission_model_test.cc admission/admission_test.cc
  admission/receiving_test.cc admission/standing_test.cc admission/admission_stress_test.cc admission/receiving_stress_test.cc)
target_link_libraries(admission_test PRIVATE quantd::admission quantd::memory quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(admission_test server.admission 60)
