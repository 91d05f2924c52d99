# What engine_bench.py measures quantd_core's module beside.
add_library(engine_core SHARED engine_core.cc)
target_link_libraries(engine_core PRIVATE quantd::core quantd_build)
