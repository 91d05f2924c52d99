quantd_core_test(oracle oracle_test.cc)
