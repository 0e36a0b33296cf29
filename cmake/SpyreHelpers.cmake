# SPDX-License-Identifier: Apache-2.0
# Helpers that give every library and tool of the project the same flags.

set(SPYRE_WARNING_FLAGS -Wall -Wextra -Werror)

# spyre_add_library(<name> <sources...> [LINK <libs...>] [DEPENDS <targets...>])
# A static, position-independent library with the project's warnings.
function(spyre_add_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${SPYRE_WARNING_FLAGS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# spyre_add_tool(<name> <sources...> [LINK <libs...>]): an executable in
# build/bin.
function(spyre_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${SPYRE_WARNING_FLAGS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  install(TARGETS ${name} DESTINATION bin COMPONENT tools)
endfunction()

# spyre_add_unittest(<name> <sources...> [LINK <libs...>]): a GoogleTest
# executable that ctest runs.
function(spyre_add_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${SPYRE_WARNING_FLAGS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                        ${CMAKE_BINARY_DIR}/unittests)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST)
endfunction()

# add_subdirectory() for a part that may be left out of a partial checkout.
macro(spyre_add_subdirectory dir)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt)
    add_subdirectory(${dir})
  endif()
endmacro()
