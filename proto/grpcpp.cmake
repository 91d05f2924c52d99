# PkgConfig::grpcpp: gRPC's C++ library, from pkg-config, because not every package of it has a CMake configuration. Included by
# this folder and by the installed client's configuration. pkg-config is called once: pkg_check_modules calls it a dozen times,
# and each time it takes two seconds to follow gRPC's dependencies.
if(TARGET PkgConfig::grpcpp)
  return()
endif()
find_package(PkgConfig REQUIRED)
# The folders that pkg_check_modules would search, too.
set(quantd_paths $ENV{PKG_CONFIG_PATH})
foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
  list(APPEND quantd_paths ${prefix}/lib/pkgconfig ${prefix}/share/pkgconfig)
  if(CMAKE_LIBRARY_ARCHITECTURE)
    list(APPEND quantd_paths ${prefix}/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig)
  endif()
endforeach()
list(JOIN quantd_paths ":" quantd_paths)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${quantd_paths} ${PKG_CONFIG_EXECUTABLE} --cflags --libs grpc++
  OUTPUT_VARIABLE quantd_grpcpp OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE quantd_grpcpp_error RESULT_VARIABLE quantd_grpcpp_failed)
if(quantd_grpcpp_failed)
  message(FATAL_ERROR "gRPC's C++ library is not installed (libgrpc++-dev): ${quantd_grpcpp_error}")
endif()
separate_arguments(quantd_grpcpp UNIX_COMMAND "${quantd_grpcpp}")
# If a library is named several times, the last place counts: static libraries come after those that need them.
list(REVERSE quantd_grpcpp)
list(REMOVE_DUPLICATES quantd_grpcpp)
list(REVERSE quantd_grpcpp)
add_library(PkgConfig::grpcpp INTERFACE IMPORTED GLOBAL)
foreach(flag IN LISTS quantd_grpcpp)
  if(flag MATCHES "^-I(.+)")
    target_include_directories(PkgConfig::grpcpp SYSTEM INTERFACE ${CMAKE_MATCH_1})
  elseif(flag MATCHES "^-L(.+)")
    target_link_directories(PkgConfig::grpcpp INTERFACE ${CMAKE_MATCH_1})
  elseif(flag MATCHES "^-(l|Wl,|pthread)")
    target_link_libraries(PkgConfig::grpcpp INTERFACE ${flag})
  else()
    target_compile_options(PkgConfig::grpcpp INTERFACE ${flag})
  endif()
endforeach()
