quantd_core_test(layouts layouts_parts_test.cc)
