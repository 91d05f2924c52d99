quantd_core_test(types types_bytes_test.cc types_shape_test.cc types_values_test.cc)
