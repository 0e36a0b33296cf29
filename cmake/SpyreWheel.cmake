# SPDX-License-Identifier: Apache-2.0
# What a wheel contains besides Python: build/wheel/torch_spyre, made by the target
# `wheel`. It needs no LLVM: one library, libSpyre.so, has inside what the tools and
# the extension use of it. The objects are those of the development build, which
# links the distribution's shared libraries of LLVM: that takes less time.

set(SPYRE_WHEEL_FOLDER ${CMAKE_BINARY_DIR}/wheel/torch_spyre)
add_custom_target(wheel)

# Gives a target its place in the package, and makes it find libSpyre.so from there.
function(spyre_add_to_wheel name folder run_path)
  set_target_properties(${name} PROPERTIES
    EXCLUDE_FROM_ALL ON
    RUNTIME_OUTPUT_DIRECTORY ${SPYRE_WHEEL_FOLDER}/${folder}
    LIBRARY_OUTPUT_DIRECTORY ${SPYRE_WHEEL_FOLDER}/${folder}
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "${run_path}")
  install(TARGETS ${name} DESTINATION torch_spyre/${folder} COMPONENT wheel
    EXCLUDE_FROM_ALL)
  add_dependencies(wheel ${name})
endfunction()

# The executable of a tool in the wheel, of the same driver.
function(spyre_add_wheel_tool name driver)
  add_executable(${name}-wheel ${driver})
  set_target_properties(${name}-wheel PROPERTIES OUTPUT_NAME ${name})
  target_compile_options(${name}-wheel PRIVATE ${SPYRE_WARNING_FLAGS})
  target_link_libraries(${name}-wheel PRIVATE Spyre)
  spyre_add_to_wheel(${name}-wheel bin "$ORIGIN/../lib")
endfunction()

# libSpyre.so: the project's libraries, the tools, and what they use of LLVM and
# MLIR. It exports what the extension and the tools' executables call; an LLVM that
# is elsewhere in the process sees nothing of this one, nor this one of that.
function(spyre_add_wheel_library)
  # Files, not targets, which would bring the shared libraries of LLVM along.
  get_property(libraries GLOBAL PROPERTY SPYRE_LIBRARIES)
  list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  get_property(mlir GLOBAL PROPERTY MLIR_ALL_LIBS)
  set(archives)
  foreach(archive ${mlir} ${LLVM_AVAILABLE_LIBS})
    # Distributions put Polly, for example, into a package of its own.
    if(TARGET ${archive} AND archive MATCHES "^(MLIR|LLVM)")
      get_target_property(type ${archive} TYPE)
      if(type STREQUAL "STATIC_LIBRARY")
        list(APPEND archives $<TARGET_FILE:${archive}>)
      endif()
    endif()
  endforeach()

  set(source ${CMAKE_SOURCE_DIR}/cmake/wheel)
  add_library(Spyre SHARED ${source}/arc4random.cpp)
  target_compile_options(Spyre PRIVATE ${SPYRE_WARNING_FLAGS})
  # All of ours, for what only the extension calls; of LLVM what is asked for.
  target_link_libraries(Spyre PRIVATE
    -Wl,--whole-archive ${libraries} -Wl,--no-whole-archive
    -Wl,--start-group ${archives} -Wl,--end-group)
  # The cache of compiled graphs asks for the build id.
  target_link_options(Spyre PRIVATE
    -Wl,--version-script=${source}/exports.map -Wl,-Bsymbolic-functions
    -Wl,--gc-sections -Wl,--build-id=sha1)
  if(NOT SPYRE_SANITIZE)
    target_link_options(Spyre PRIVATE -Wl,-z,defs)
  endif()
  set_property(TARGET Spyre APPEND PROPERTY LINK_DEPENDS ${source}/exports.map)
  spyre_add_to_wheel(Spyre lib "")
endfunction()
