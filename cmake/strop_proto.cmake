# strop_proto_library(<target> <file.proto>...)
# Generates C++ from the .proto files at build time; the lite runtime is linked statically, so that no symbol of it meets
# the protobuf of a framework in the same process.
find_package(Protobuf REQUIRED)
find_library(STROP_PROTOBUF_LITE NAMES libprotobuf-lite.a REQUIRED)

function(strop_proto_library target)
  set(out ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  set(sources)
  set(headers)
  foreach(proto ${ARGN})
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    list(APPEND sources ${out}/${stem}.pb.cc)
    list(APPEND headers ${out}/${stem}.pb.h)
  endforeach()
  list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE inputs)
  add_custom_command(
    OUTPUT ${sources} ${headers}
    COMMAND ${Protobuf_PROTOC_EXECUTABLE} --cpp_out=${out} -I${CMAKE_SOURCE_DIR} ${inputs}
    DEPENDS ${inputs}
    COMMENT "protoc ${ARGN}")
  add_library(${target} STATIC ${sources} ${headers})
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${out}> ${Protobuf_INCLUDE_DIRS})
  target_link_libraries(${target} PUBLIC ${STROP_PROTOBUF_LITE} Threads::Threads)
endfunction()
