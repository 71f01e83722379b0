# Installs the build into a folder of its own, builds examples/embed with find_package(strop), and compares what it prints.
set(prefix ${BUILD}/embed/prefix)

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(code)
    message(FATAL_ERROR "${ARGN} fails:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples/embed -B ${BUILD}/embed/build -D CMAKE_PREFIX_PATH=${prefix}
     -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_BUILD_TYPE=Release)
step(${CMAKE_COMMAND} --build ${BUILD}/embed/build)
step(${BUILD}/embed/build/embed)
string(STRIP "${output}" output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(NOT output STREQUAL "{ { 3, 6, 9 }, { 12, 15, 18 } }")
  message(FATAL_ERROR "examples/embed printed: ${output}")
endif()
message(STATUS "examples/embed: ${output}")
