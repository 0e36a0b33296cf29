# SPDX-License-Identifier: Apache-2.0
# libSpyre.so, and what a wheel contains besides Python, made by the target `wheel`. It
# needs no LLVM: libSpyre.so has inside what the tools and the extension use of it. The
# extension of the development build alone links the distribution's shared libraries.

add_custom_target(wheel)

# Gives a target its place in the package.
function(spyre_add_to_wheel name folder)
  install(TARGETS ${name} DESTINATION torch_spyre/${folder} COMPONENT wheel
    EXCLUDE_FROM_ALL)
  add_dependencies(wheel ${name})
endfunction()

# libSpyre.so: the project's libraries, the tools, and what they use of LLVM and
# MLIR. It exports what the extension and the tools' executables call; an LLVM that
# is elsewhere in the process sees nothing of this one, nor this one of that.
function(spyre_add_shared_library)
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
    -Wl,--gc-sections -Wl,--build-id=sha1 -Wl,-z,defs)
  set_property(TARGET Spyre APPEND PROPERTY LINK_DEPENDS ${source}/exports.map)
  set_target_properties(Spyre PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  install(TARGETS Spyre DESTINATION lib COMPONENT tools)
  spyre_add_to_wheel(Spyre lib)
endfunction()
