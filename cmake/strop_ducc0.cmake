# STROP_DUCC0_DIR: the folder above ducc0/fft/fft.h. `./dev setup` fetches the version that dev_tools/sources.txt names; set the variable (on the
# command line or in the environment) where it lies elsewhere.
file(STRINGS ${PROJECT_SOURCE_DIR}/dev_tools/sources.txt ducc0 REGEX "^ducc0==")
string(REGEX REPLACE "^ducc0==([^ ]+).*" "\\1" ducc0 "${ducc0}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS dev_tools/sources.txt)
if(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(cache $ENV{XDG_CACHE_HOME})
else()
  set(cache $ENV{HOME}/.cache)
endif()
set(STROP_DUCC0_DIR "$ENV{STROP_DUCC0_DIR}" CACHE PATH "The folder src of ducc0's source distribution; empty: where ./dev setup puts it")
set(STROP_DUCC0 ${STROP_DUCC0_DIR})
if(NOT STROP_DUCC0)
  set(STROP_DUCC0 ${cache}/strop/ducc0-${ducc0}/src)
endif()
if(NOT EXISTS ${STROP_DUCC0}/ducc0/fft/fft.h)
  message(FATAL_ERROR "ducc0 ${ducc0}, which Strop's Fourier transforms use, is not in ${STROP_DUCC0}.\n"
    "Run ./dev setup, which fetches it; or: pip download --no-deps --no-binary ducc0 ducc0==${ducc0}, unpack it, and configure with "
    "-DSTROP_DUCC0_DIR=<folder>/src.")
endif()

# strop_ducc0_kernels(<target> <instruction set> [compile options])
# Adds the object of strop/cpu/kernels/fft_ducc_<set>.cc to <target>. All of its symbols but FftTable<Set>() are made local: templates and inline
# functions of the standard library that were compiled for this set can then not be merged with those that others use
# (tests/symbols/instruction_sets_test.py).
find_program(STROP_RELOCATABLE_LD NAMES ld.bfd REQUIRED)
function(strop_ducc0_kernels target set)
  set(name fft_ducc_${set})
  add_library(strop_${name} OBJECT strop/cpu/kernels/${name}.cc)
  target_compile_options(strop_${name} PRIVATE -ffp-contract=fast -fno-gnu-unique ${ARGN})  # unique symbols could not be made local
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(strop_${name} PRIVATE -fno-sanitize=all)  # with sanitizers this one file takes over four minutes to compile
  endif()
  target_include_directories(strop_${name} SYSTEM PRIVATE ${STROP_DUCC0})
  target_include_directories(strop_${name} PRIVATE strop/cpu/kernels)  # ducc0 includes ducc0_custom_lowlevel_threading.h
  set(out ${PROJECT_BINARY_DIR}/isolated/${name}.cc.o)  # as CMake would call it
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/isolated)
  add_custom_command(OUTPUT ${out}
    COMMAND ${STROP_RELOCATABLE_LD} -r --force-group-allocation -o ${out} $<TARGET_OBJECTS:strop_${name}>
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=_ZN5strop3cpu*FftTable*Ev ${out}
    DEPENDS strop_${name} $<TARGET_OBJECTS:strop_${name}> COMMENT "Isolating ${name}" VERBATIM)
  set_source_files_properties(${out} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  target_sources(${target} PRIVATE ${out})
endfunction()
