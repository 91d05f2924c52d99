# What quantd is compared with. Built by peers.sh only, not with everything: ONNX Runtime's library is loaded at run time,
# from the Python wheel.

if(QUANTD_BUILD_SERVER AND QUANTD_BUILD_CLIENT)
  find_package(nlohmann_json REQUIRED)
  # peers_rpc: calls to quantd, to the raw echo and to the servers that a user would otherwise write.
  add_executable(peers_rpc EXCLUDE_FROM_ALL peers_rpc.cc)
  target_link_libraries(peers_rpc PRIVATE quantd_build rpc_load quantd::process absl::flags
    absl::flags_parse)
  target_compile_definitions(peers_rpc PRIVATE
    QUANTD_BINARY="$<TARGET_FILE:quantd>" ECHO_BINARY="$<TARGET_FILE:rpc_echo>")
  add_dependencies(peers_rpc quantd rpc_echo)
endif()

add_library(peers_onnxruntime STATIC EXCLUDE_FROM_ALL peers_onnxruntime.cc)
target_link_libraries(peers_onnxruntime PUBLIC absl::statusor PRIVATE quantd_build absl::strings ${CMAKE_DL_LIBS})

find_package(nlohmann_json REQUIRED)
# peers_kernels: the three operations beside ONNX Runtime's.
add_executable(peers_kernels EXCLUDE_FROM_ALL peers_kernels.cc peers_operations.cc kernels_limits.cc)
target_include_directories(peers_kernels PRIVATE ${PROJECT_SOURCE_DIR}/core/src ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(peers_kernels PRIVATE quantd_build quantd::core peers_onnxruntime hwy::hwy absl::flags
  absl::flags_parse absl::strings nlohmann_json::nlohmann_json)

if(TARGET peers_rpc)
  # What a C++ programmer would write with ONNX Runtime.
  add_executable(peers_callback_server EXCLUDE_FROM_ALL peers_callback_server.cc)
  target_link_libraries(peers_callback_server PRIVATE quantd_build quantd::proto_grpc peers_onnxruntime absl::strings)
endif()
