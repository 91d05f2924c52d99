quantd_core_test(operations
  operations_errors_test.cc
  operations_stop_test.cc
  operations_test.cc
)
