# Debian packages of a build tree, by CPack: `cpack --config build/release/CPackConfig.cmake -B FOLDER`.
# quantd: the server and its unit; quantctl: the command line; NAME-dbgsym: what a debugger and addr2line need for each.
# dpkg-shlibdeps finds their dependencies.
include(GNUInstallDirs)
set(here ${CMAKE_CURRENT_LIST_DIR})
install(FILES ${here}/quantd.service DESTINATION lib/systemd/system COMPONENT server)
install(FILES ${here}/quantd.default DESTINATION /etc/default RENAME quantd COMPONENT server)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/quantd RENAME copyright COMPONENT server)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/quantctl RENAME copyright COMPONENT client)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME quantd)
set(CPACK_PACKAGE_VENDOR quantd)
set(CPACK_PACKAGE_CONTACT "quantd <quantd@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "quantizes tensors over gRPC, bit for bit as ONNX defines it")
set(CPACK_SET_DESTDIR ON)  # /etc is not under /usr
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)  # strips them
set(CPACK_OBJCOPY_EXECUTABLE ${CMAKE_OBJCOPY})
set(CPACK_COMPONENTS_ALL server client)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
else()
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME quantd)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS passwd)  # useradd, for postinst
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS quantctl)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${here}/postinst ${here}/prerm ${here}/postrm ${here}/conffiles)
set(CPACK_COMPONENT_SERVER_DESCRIPTION
  "The server, with a unit for systemd and /etc/default/quantd.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME quantctl)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SUGGESTS quantd)
set(CPACK_COMPONENT_CLIENT_DESCRIPTION
  "The command line: quantizes .npy and .safetensors, here or on a server, and asks a server whether it is well.")
include(CPack)
