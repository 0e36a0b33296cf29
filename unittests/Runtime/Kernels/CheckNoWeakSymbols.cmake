# SPDX-License-Identifier: Apache-2.0
# Fails if a kernel object of ARCHIVE defines a weak symbol. TileKernels.cpp is
# compiled once, for the oldest processor, and may.
execute_process(COMMAND ${NM} -A --defined-only ${ARCHIVE}
                OUTPUT_VARIABLE symbols RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${NM} failed")
endif()
string(REGEX MATCHALL "[^\n]*Kernel[^\n]* [WVu] [^\n]*" weak "${symbols}")
list(FILTER weak EXCLUDE REGEX "TileKernels\\.cpp")
if(weak)
  message(FATAL_ERROR "weak symbols in kernel objects:\n${weak}")
endif()
