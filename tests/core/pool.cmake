quantd_core_test(pool pool_executor_test.cc)
