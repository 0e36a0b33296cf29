# SPDX-License-Identifier: Apache-2.0
# Helpers that give every library and tool of the project the same flags.

set(SPYRE_WARNING_FLAGS -Wall -Wextra -Werror)

# ccache keeps files that use a precompiled header with this sloppiness, and with
# precompiled headers that are equal whenever their sources are.
set(SPYRE_PRECOMPILED_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
if(CCACHE_PROGRAM)
  list(INSERT SPYRE_PRECOMPILED_LAUNCHER 1
       CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
endif()
function(spyre_cache_precompiled name)
  set_target_properties(${name} PROPERTIES
    CXX_COMPILER_LAUNCHER "${SPYRE_PRECOMPILED_LAUNCHER}")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# What `PRECOMPILE <name>` of the functions below compiles once for all targets of the
# same flags. It goes before everything that a file includes:
#   DIALECTS  MLIR's headers and those of the project's dialects, which take longest
#   GTEST     GoogleTest's, for unit tests that do not ask for these
# The result names its sources by their place, so ccache shares it, and what uses it,
# between builds of one clone only.
set(SPYRE_PRECOMPILED_DIALECTS ${CMAKE_CURRENT_LIST_DIR}/PrecompiledDialects.h)
set(SPYRE_PRECOMPILED_GTEST ${CMAKE_CURRENT_LIST_DIR}/PrecompiledGTest.h)
set(SPYRE_PRECOMPILED_DIALECTS_LINKS MLIR nlohmann_json::nlohmann_json)
set(SPYRE_PRECOMPILED_GTEST_LINKS GTest::gtest)
function(spyre_precompile name kind)
  set(headers SpyrePrecompiled_${kind})
  if(NOT TARGET ${headers})
    set(source ${CMAKE_BINARY_DIR}/precompiled/${headers}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "int ${headers};\n")
    add_library(${headers} STATIC EXCLUDE_FROM_ALL ${source})
    target_compile_options(${headers} PRIVATE ${SPYRE_WARNING_FLAGS})
    target_link_libraries(${headers} PRIVATE ${SPYRE_PRECOMPILED_${kind}_LINKS})
    if(kind STREQUAL "DIALECTS")
      add_dependencies(${headers} SpyreGraphIRIncGen SpyreKTIRIncGen)
    endif()
    target_precompile_headers(${headers} PRIVATE ${SPYRE_PRECOMPILED_${kind}})
    spyre_cache_precompiled(${headers})
  endif()
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE")  # -fPIE, after which -fPIC is what libraries have
    target_compile_options(${name} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${headers})
  spyre_cache_precompiled(${name})
endfunction()

# spyre_add_library(<name> <sources...> [LINK <libs...>] [DEPENDS <targets...>]
#                   [PRECOMPILE DIALECTS])
# A static, position-independent library with the project's warnings, part of the
# CMake package that is installed.
function(spyre_add_library name)
  spyre_add_archive(${name} ${ARGN})
  spyre_install_library(${name})
endfunction()

# The same, but not installed.
function(spyre_add_archive name)
  cmake_parse_arguments(ARG "" "PRECOMPILE" "LINK;DEPENDS" ${ARGN})
  spyre_batch(sources ${name} ${ARG_UNPARSED_ARGUMENTS})
  add_library(${name} STATIC ${sources})
  target_compile_options(${name} PRIVATE ${SPYRE_WARNING_FLAGS})
  if(ARG_PRECOMPILE)
    spyre_precompile(${name} ${ARG_PRECOMPILE})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  set_property(GLOBAL APPEND PROPERTY SPYRE_LIBRARIES ${name})
endfunction()

# spyre_add_test_tool(<name> <sources...> [LINK <libs...>]): an executable in
# build/bin that only tests use.
function(spyre_add_test_tool name)
  cmake_parse_arguments(ARG "" "PRECOMPILE" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${SPYRE_WARNING_FLAGS})
  if(ARG_PRECOMPILE)
    spyre_precompile(${name} ${ARG_PRECOMPILE})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY SPYRE_TEST_TOOLS ${name})
endfunction()

# spyre_add_tool(<name> <sources...> [LINK <libs...>]): an executable in
# build/bin that is installed for users. Its sources define, for spyre-x,
#   int spyre_x_main(int argc, char **argv)
# and are a library, <name>-main, which is part of libSpyre.so.
function(spyre_add_tool name)
  spyre_add_archive(${name}-main ${ARGN})
  string(REPLACE "-" "_" SPYRE_TOOL_MAIN ${name}_main)
  set(driver ${CMAKE_CURRENT_BINARY_DIR}/${name}-driver.cpp)
  configure_file(${CMAKE_SOURCE_DIR}/tools/driver.cpp.in ${driver} @ONLY)
  add_executable(${name} ${driver})
  target_compile_options(${name} PRIVATE ${SPYRE_WARNING_FLAGS})
  if(SPYRE_SANITIZE)
    target_link_libraries(${name} PRIVATE ${name}-main)
  else()
    # With the distribution's libMLIR.so it would take eight times as long to start.
    target_link_libraries(${name} PRIVATE Spyre)
  endif()
  spyre_install_tool(${name})
  set_property(GLOBAL APPEND PROPERTY SPYRE_PRODUCTS ${name})
endfunction()

# spyre_add_unittest(<name>Tests <sources...> [LINK <libs...>]
#                    [PRECOMPILE DIALECTS]): a GoogleTest executable in
# build/unittests, where lit finds it by the end of its name.
function(spyre_add_unittest name)
  cmake_parse_arguments(ARG "" "PRECOMPILE" "LINK" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${SPYRE_WARNING_FLAGS})
  if(NOT ARG_PRECOMPILE)
    set(ARG_PRECOMPILE GTEST)
  endif()
  spyre_precompile(${name} ${ARG_PRECOMPILE})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                        ${CMAKE_BINARY_DIR}/unittests)
  add_test(NAME ${name} COMMAND ${name})
  set_property(GLOBAL APPEND PROPERTY SPYRE_UNITTESTS ${name})
endfunction()

# spyre_add_doc(<file.td> <output name> <mlir-tblgen flags...>): a page
# build/docs/<output name>.md, made by the target docs. For example
#   spyre_add_doc(Passes.td SpyreGraphPasses -gen-pass-doc)
function(spyre_add_doc td output)
  set(LLVM_TARGET_DEFINITIONS ${td})
  tablegen(MLIR ${output}.md ${ARGN})
  set(page ${CMAKE_BINARY_DIR}/docs/${output}.md)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${output}.md
            ${page}
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${output}.md)
  add_custom_target(${output}Doc DEPENDS ${page})
  add_dependencies(docs ${output}Doc)
endfunction()

# add_subdirectory() for a part that may be left out of a partial checkout.
macro(spyre_add_subdirectory dir)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt)
    add_subdirectory(${dir})
  endif()
endmacro()
