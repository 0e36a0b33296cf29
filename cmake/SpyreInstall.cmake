# SPDX-License-Identifier: Apache-2.0
# `cmake --install build` makes a tree for people who build on the project: the
# component `tools`, and `development` with libraries, headers and the CMake package
# Spyre.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Installs a library, as part of the CMake package.
function(spyre_install_library name)
  install(TARGETS ${name} EXPORT SpyreTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# Installs a tool, which finds libSpyre.so beside its folder, or, if it is sanitized,
# libMLIR.so in the library directory of the LLVM that it was built with.
function(spyre_install_tool name)
  if(SPYRE_SANITIZE)
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
  else()
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  endif()
  install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  spyre_add_to_wheel(${name} bin)
endfunction()

# Installs headers, TableGen's output among them, and what find_package(Spyre)
# reads.
function(spyre_install_package)
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/Spyre)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/Spyre
                    ${CMAKE_BINARY_DIR}/include/Spyre
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.td" PATTERN "*.inc")
  install(EXPORT SpyreTargets DESTINATION ${folder} COMPONENT development)
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/SpyreConfig.cmake.in
    ${CMAKE_BINARY_DIR}/cmake/SpyreConfig.cmake INSTALL_DESTINATION ${folder})
  # Nothing is promised between versions 0.x and 0.y.
  write_basic_package_version_file(
    ${CMAKE_BINARY_DIR}/cmake/SpyreConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/cmake/SpyreConfig.cmake
                ${CMAKE_BINARY_DIR}/cmake/SpyreConfigVersion.cmake
    DESTINATION ${folder} COMPONENT development)
endfunction()
