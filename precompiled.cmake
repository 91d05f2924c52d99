# The headers that nearly every file includes, parsed once: for a test, that is half of the time to compile it. The presets clang and lint
# do without, so that a forgotten #include shows there.
#
# Most of a test is GoogleTest's macros, and optimizing them took most of the time (-Wno-cpp: glibc warns that without optimization no copy
# is checked). The core's tests compute much themselves, also under an emulator.
set(tests_options -O0 -g0 -Wno-cpp $<$<STREQUAL:${QUANTD_SANITIZE},address>:-fno-sanitize=undefined>)
set(core_tests_options -O1 -g0 $<$<STREQUAL:${QUANTD_SANITIZE},address>:-fno-sanitize=undefined>)
set(precompiled_kinds libraries)
# A file with other options (another -O, for g++ 14, or no sanitizer) includes the headers as if they were not precompiled.
set(CMAKE_PCH_WARN_INVALID OFF)
if(QUANTD_BUILD_TESTS)
  list(APPEND precompiled_kinds tests core_tests)
endif()
foreach(kind IN LISTS precompiled_kinds)
  if(kind STREQUAL "libraries")
    add_library(precompiled_for_${kind} STATIC EXCLUDE_FROM_ALL precompiled.cc)
  else()
    add_executable(precompiled_for_${kind} EXCLUDE_FROM_ALL precompiled.cc)
    target_compile_options(precompiled_for_${kind} PRIVATE ${${kind}_options})
    target_link_libraries(precompiled_for_${kind} PRIVATE GTest::gmock_main)
    target_precompile_headers(precompiled_for_${kind} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_link_libraries(precompiled_for_${kind} PRIVATE quantd_build absl::statusor absl::strings absl::str_format absl::time)
  target_precompile_headers(precompiled_for_${kind} PRIVATE
    <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <deque> <fstream> <functional> <map>
    <memory> <mutex> <optional> <random> <set> <sstream> <string> <thread> <utility> <vector> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_split.h> <absl/time/time.h> <absl/types/span.h>)
endforeach()

# precompiled_headers(DIRECTORY): for the targets of that directory and of those below it.
function(precompiled_headers directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(target MATCHES "^precompiled_for_")
      # They are the headers.
    elseif(NOT "quantd_build" IN_LIST libraries AND NOT "$<BUILD_INTERFACE:quantd_build>" IN_LIST libraries)
      continue()
    elseif(type STREQUAL "STATIC_LIBRARY")
      target_precompile_headers(${target} REUSE_FROM precompiled_for_libraries)
    elseif("GTest::gmock_main" IN_LIST libraries)
      set(kind tests)
      if(directory STREQUAL "${PROJECT_SOURCE_DIR}/tests/core")
        set(kind core_tests)
      endif()
      target_precompile_headers(${target} REUSE_FROM precompiled_for_${kind})
      target_compile_options(${target} PRIVATE ${${kind}_options})
    else()
      continue()
    endif()
    # With precompiled headers, g++ 12 reports copies past the end in "a" + std::string(n, 'b').
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess> $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
      $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  endforeach()
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(one ${below})
    precompiled_headers(${one})
  endforeach()
endfunction()
