# SPDX-License-Identifier: Apache-2.0
# Files that are compiled together. What two files include, and the code of the
# templates that both use, is compiled once: a batch takes half to four fifths of the time
# of its files.
#
# A batch is a copy of its files in a row, with markers of where each line is from, so
# that warnings, errors and debuggers name the files. CMake's own unity builds include the
# files instead, and the compiler does not warn of what a file that is included never
# uses.

option(SPYRE_BATCHES "Compile the sources of a folder together, several at a time" ON)

# More in one batch would save little, and a change to a file compiles all of its batch.
set(SPYRE_BATCH_BYTES 80000)

# spyre_batch(<variable> <name> <source>...)
# Sets the variable to what is to be compiled for these sources of the current folder,
# which belong to the target <name>.
function(spyre_batch result name)
  if(NOT SPYRE_BATCHES)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(all ${ARGN})
  list(FILTER all EXCLUDE REGEX "[.]cpp$") # objects of other targets
  set(folders)
  set(files ${ARGN})
  list(FILTER files INCLUDE REGEX "[.]cpp$")
  foreach(source ${files})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(GET source PARENT_PATH folder)
    list(APPEND folders ${folder})
    list(APPEND sources_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    set(batch)
    set(bytes 0)
    foreach(source ${sources_${folder}})
      file(SIZE ${source} size)
      math(EXPR sum "${bytes} + ${size}")
      if(batch AND sum GREATER SPYRE_BATCH_BYTES)
        spyre_add_batch(all ${name} ${folder} ${batch})
        set(batch)
        set(sum ${size})
      endif()
      list(APPEND batch ${source})
      set(bytes ${sum})
    endforeach()
    spyre_add_batch(all ${name} ${folder} ${batch})
  endforeach()
  set(${result} ${all} PARENT_SCOPE)
endfunction()

# Appends the file that these sources of one folder are copied to. One source stays what
# it is.
function(spyre_add_batch into name folder)
  list(LENGTH ARGN count)
  if(count EQUAL 1)
    set(${into} ${${into}} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(text)
  foreach(source ${ARGN})
    file(READ ${source} lines)
    string(APPEND text "# 1 \"${source}\"\n${lines}\n")
  endforeach()
  list(GET ARGN 0 first)
  cmake_path(GET first STEM stem)
  set(batch ${CMAKE_CURRENT_BINARY_DIR}/${name}.dir/${stem}-and-others.cpp)
  set(before)
  if(EXISTS ${batch})
    file(READ ${batch} before)
  endif()
  if(NOT text STREQUAL before)
    file(WRITE ${batch} "${text}")
  endif()
  # A change of a file is seen by the next build, which runs CMake for a second.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  # Where the files look for what they include between quotes.
  set_source_files_properties(${batch} PROPERTIES COMPILE_OPTIONS "-iquote;${folder}")
  set(${into} ${${into}} ${batch} PARENT_SCOPE)
endfunction()
