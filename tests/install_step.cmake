# What tests that install share: BUILD, SOURCE and LAUNCHER are given, `prefix` is where the build is installed.
set(prefix ${BUILD}/embed/prefix)

# Runs a command, which must succeed; `output` is what it wrote.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(code)
    message(FATAL_ERROR "${ARGN} fails:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# build_example(<name> [settings]): examples/<name> with find_package(strop), into ${BUILD}/embed/<name>.
function(build_example name)
  step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
  step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples/${name} -B ${BUILD}/embed/${name} -D CMAKE_PREFIX_PATH=${prefix}
       -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_BUILD_TYPE=Release ${ARGN})
  step(${CMAKE_COMMAND} --build ${BUILD}/embed/${name})
endfunction()
