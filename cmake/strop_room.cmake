# strop_room(<name> [ROOMS lower rooms] [LINK other libraries] [LLVM])
# One static library per room, strop_<name>, from strop/<name>/**/*.cc; its *_test.cc become one gtest program, strop_<name>_test, run as unit.<name>.
# Sources are globbed, so that adding a file edits no build file. A main.cc is left out: it belongs to a program (strop_program).
# LLVM: the room may include llvm/ headers and links LLVM's static libraries. EXCLUDE: sources that are compiled in another way.
# What nearly every file above ir includes is compiled once, for the rooms and for the tests: half of their time. (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
# shows which file forgot an include.)
# The environment variable of the same name gives the default: tests/howto leaves the unit tests out of its copy, where it tests the pages.
set(STROP_UNIT_TESTS_DEFAULT ON)
if(DEFINED ENV{STROP_UNIT_TESTS})
  set(STROP_UNIT_TESTS_DEFAULT $ENV{STROP_UNIT_TESTS})
endif()
option(STROP_UNIT_TESTS "Build the rooms' unit tests" ${STROP_UNIT_TESTS_DEFAULT})

function(strop_room name)
  cmake_parse_arguments(ROOM "LLVM" "EXCLUDE" "ROOMS;LINK" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/strop/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  if(ROOM_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${ROOM_EXCLUDE}")
  endif()
  list(TRANSFORM ROOM_ROOMS PREPEND strop_)
  get_property(above_ir GLOBAL PROPERTY STROP_ROOMS_ABOVE_IR)
  set(ROOM_ABOVE_IR OFF)
  foreach(room strop_${name} ${ROOM_ROOMS})
    if(room STREQUAL strop_ir OR room IN_LIST above_ir)
      set(ROOM_ABOVE_IR ON)
    endif()
  endforeach()
  if(ROOM_ABOVE_IR)
    set_property(GLOBAL APPEND PROPERTY STROP_ROOMS_ABOVE_IR strop_${name})
  endif()
  if(sources)
    add_library(strop_${name} STATIC ${sources})
    target_link_libraries(strop_${name} PUBLIC ${ROOM_ROOMS} ${ROOM_LINK})
    if(ROOM_LLVM)
      strop_room_llvm(strop_${name})
      strop_precompile(strop_${name} strop_codegen <strop/codegen/llvm_headers.h> <strop/ir/module.h>)
    elseif(ROOM_ABOVE_IR)
      strop_precompile(strop_${name} strop_ir <strop/ir/module.h> <algorithm> <functional> <optional> <unordered_map>)
    endif()
  else()
    add_library(strop_${name} INTERFACE)
    target_link_libraries(strop_${name} INTERFACE ${ROOM_ROOMS} ${ROOM_LINK})
  endif()
  add_library(strop::${name} ALIAS strop_${name})
  set_target_properties(strop_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY STROP_ROOMS strop_${name})
  if(tests AND STROP_UNIT_TESTS)
    add_executable(strop_${name}_test ${tests})
    target_compile_definitions(strop_${name}_test PRIVATE STROP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_link_libraries(strop_${name}_test PRIVATE strop_${name} GTest::gtest GTest::gtest_main)
    set(precompiler strop_ir_test)
    if(ROOM_LLVM)
      strop_room_llvm(strop_${name}_test)
      set(precompiler strop_${name}_test)  # LLVM's definitions are other than the rest's
    endif()
    if(ROOM_ABOVE_IR)
      strop_precompile(strop_${name}_test ${precompiler} <gtest/gtest.h> <strop/ir/module.h>)
    endif()
    add_test(NAME unit.${name} COMMAND strop_${name}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endif()
endfunction()

# strop_precompile(<target> <owner> <header>...): the owner compiles the headers, the others reuse what it made.
# Headers in angle brackets: the names stay relative, so that a compiler cache serves other work trees too.
function(strop_precompile target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

function(strop_room_llvm target)
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE ${STROP_LLVM_DEFINITIONS})
  target_link_libraries(${target} PRIVATE ${STROP_LLVM_LIBRARIES})
  target_link_options(${target} INTERFACE LINKER:--wrap=__cxa_atexit)  # strop/codegen/llvm_guard.cc: what LLVM makes lives on
  foreach(phase 7CombineENS_12CombineLevelEPNS_14BatchAAResultsENS_15CodeGenOptLevelE 13LegalizeTypesEv 15LegalizeVectorsEv 8LegalizeEv)
    target_link_options(${target} INTERFACE LINKER:--wrap=_ZN4llvm12SelectionDAG${phase})  # strop/codegen/selection_guard.cc: their budgets
  endforeach()
endfunction()

# strop_program(<name> <room>): the program <name> from strop/<room>/main.cc and the room's library. Nothing where there is no main.cc yet.
function(strop_program name room)
  set(main ${PROJECT_SOURCE_DIR}/strop/${room}/main.cc)
  if(EXISTS ${main})
    add_executable(${name} ${main})
    target_link_libraries(${name} PRIVATE strop_${room})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  endif()
endfunction()

# strop_plugin(<name> <room> <folder>): the target <name>_plugin, lib<name>.so, which exports only what strop/<room>/exports.map lists; libstdc++ and LLVM
# are inside. A wheel puts it into that folder of site-packages.
function(strop_plugin name room folder)
  get_target_property(type strop_${room} TYPE)
  set(map ${PROJECT_SOURCE_DIR}/strop/${room}/exports.map)
  if(type STREQUAL "STATIC_LIBRARY" AND EXISTS ${map})
    file(WRITE ${PROJECT_BINARY_DIR}/${name}.cc "// A shared library needs one source; everything comes from strop_${room}.\n")
    add_library(${name}_plugin SHARED ${PROJECT_BINARY_DIR}/${name}.cc)
    target_link_libraries(${name}_plugin PRIVATE -Wl,--whole-archive strop_${room} -Wl,--no-whole-archive)
    target_link_options(${name}_plugin PRIVATE -static-libstdc++ -static-libgcc -Wl,--version-script=${map} -Wl,--gc-sections -Wl,-z,defs)
    set_target_properties(${name}_plugin PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINK_DEPENDS ${map})
    install(TARGETS ${name}_plugin LIBRARY DESTINATION ${folder} COMPONENT python EXCLUDE_FROM_ALL)
  endif()
endfunction()

# strop_page(<room> <name>): strop/<room>/<name>.html as the string k<Name>Page in strop/<room>/<name>_page.h.
function(strop_page room name)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS strop/${room}/${name}.html)
  file(READ strop/${room}/${name}.html STROP_PAGE)
  string(SUBSTRING ${name} 0 1 initial)
  string(SUBSTRING ${name} 1 -1 rest)
  string(TOUPPER ${initial} initial)
  set(constant ${initial}${rest})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/strop/${room}/${name}_page.h @ONLY CONTENT
"#pragma once
namespace strop::@room@ {
inline constexpr char k@constant@Page[] = R\"page(@STROP_PAGE@)page\";
}  // namespace strop::@room@
")
  target_include_directories(strop_${room} PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()
