quantd_core_test(execute
  execute_blocks_test.cc
  execute_cursor_test.cc
  execute_executor_test.cc
)
quantd_core_test(operations
  operations_test.cc
)
