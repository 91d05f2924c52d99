# rpc_bench: quantd's calls beside a raw echo; rpc_echo: that echo.
add_executable(rpc_echo rpc_echo.cc)
target_link_libraries(rpc_echo PRIVATE quantd_build quantd::proto_grpc quantd::process absl::strings)
set_target_properties(rpc_echo PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

find_package(nlohmann_json REQUIRED)
# The load, the servers' processes, turns and ratios; peers_rpc has them too.
add_library(rpc_load STATIC EXCLUDE_FROM_ALL rpc_client.cc rpc_process.cc rpc_requests.cc rpc_turns.cc)
target_link_libraries(rpc_load PUBLIC quantd::proto_grpc nlohmann_json::nlohmann_json absl::strings PRIVATE quantd_build)

add_executable(rpc_bench rpc_bench.cc rpc_servers.cc rpc_table.cc rpc_stream.cc rpc_beside.cc rpc_fair.cc rpc_flood.cc
  rpc_scaling.cc rpc_shared.cc rpc_tls.cc rpc_memory.cc)
target_link_libraries(rpc_bench PRIVATE quantd_build rpc_load quantd::core quantd::process)
target_compile_definitions(rpc_bench PRIVATE
  QUANTD_BINARY="$<TARGET_FILE:quantd>" ECHO_BINARY="$<TARGET_FILE:rpc_echo>")
add_dependencies(rpc_bench quantd rpc_echo)
# A run of a second, so that it keeps working.
add_test(NAME bench.rpc_smoke COMMAND rpc_bench --rounds=1 --turn_seconds=0.01 "--only=tcp 4 1")
add_test(NAME bench.rpc_tls_smoke COMMAND rpc_bench --rounds=1 --turn_seconds=0.01 --only=tls)
set_tests_properties(bench.rpc_smoke bench.rpc_tls_smoke PROPERTIES LABELS unit TIMEOUT 60)
