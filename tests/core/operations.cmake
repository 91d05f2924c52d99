quantd_core_test(operations
  operations_compare.cc
  operations_embeddings_test.cc
  operations_errors_test.cc
  operations_stop_test.cc
  operations_test.cc
)
