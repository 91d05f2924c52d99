quantd_core_test(walk walk_block_walk_test.cc)
