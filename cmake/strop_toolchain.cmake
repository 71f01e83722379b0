# How everything is compiled and linked: language, warnings, numerics, compiler cache, linker, LLVM.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# -ffp-contract=off: a*b+c is fused only where the program says so, so that the oracle's results are the same on every machine.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -fno-math-errno -ffp-contract=off
  -ffunction-sections -fdata-sections)
include_directories(${CMAKE_CURRENT_SOURCE_DIR})

# A compiler cache, unless the environment or the command line names a launcher of its own.
find_program(STROP_CCACHE ccache)
if(STROP_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${STROP_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STROP_CCACHE})
endif()

# A fast linker: with LLVM inside, GNU ld takes about ten times as long as mold. Sanitizer builds keep the default, which they are tested with.
include(CheckLinkerFlag)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  foreach(linker mold lld)
    string(TOUPPER STROP_LINKS_WITH_${linker} works)
    check_linker_flag(CXX -fuse-ld=${linker} ${works})
    if(${works})
      add_link_options(-fuse-ld=${linker})
      break()
    endif()
  endforeach()
endif()

# What base/build_identity.h tells.
add_link_options(-Wl,--build-id)

# LLVM, static. Only rooms declared with LLVM see its headers (strop_room).
# So are zlib and zstd, which LLVM and .npz files use: the plugin then needs nothing but the C library.
set(ZLIB_USE_STATIC_LIBS ON)
find_package(LLVM 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22)
if(TARGET zstd::libzstd_shared AND zstd_STATIC_LIBRARY)
  set_target_properties(zstd::libzstd_shared PROPERTIES IMPORTED_LOCATION ${zstd_STATIC_LIBRARY})
endif()
llvm_map_components_to_libnames(STROP_LLVM_LIBRARIES X86 NVPTX Passes)
separate_arguments(STROP_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
list(REMOVE_ITEM STROP_LLVM_DEFINITIONS -D_GLIBCXX_USE_CXX11_ABI=1)  # the default; stated again it would spoil the precompiled headers
