quantd_core_test(layouts layouts_convert_test.cc layouts_golden_test.cc layouts_parts_test.cc layouts_weights.cc)
target_compile_definitions(core_layouts_test PRIVATE QUANTD_GOLDEN_LAYOUTS="${PROJECT_SOURCE_DIR}/tests/golden/layouts.txt")
