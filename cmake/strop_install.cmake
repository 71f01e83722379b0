# strop_install(): `cmake --install` gives bin/strop, the plugin, the rooms' static libraries and headers, and what find_package(strop) reads. The
# libraries are for programs of the same version: strop::strop is all of it behind strop/strop.h, strop::<room> a room with what it needs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

function(strop_install)
  get_property(rooms GLOBAL PROPERTY STROP_ROOMS)
  add_library(strop_strop INTERFACE)
  set_target_properties(strop_strop PROPERTIES EXPORT_NAME strop)
  target_link_libraries(strop_strop INTERFACE strop_capi)
  install(TARGETS ${rooms} strop_strop strop_wire EXPORT strop-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT strop-targets NAMESPACE strop:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/strop)

  # What `strop compile -o NAME.so` links with: a linker script of the build's libraries, and one of the installation's.
  set(built "")
  set(installed "")
  foreach(room ${rooms} strop_wire)
    get_target_property(type ${room} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      string(APPEND built " $<TARGET_FILE:${room}>")
      string(APPEND installed " $<TARGET_FILE_NAME:${room}>")
    endif()
  endforeach()
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}/strop_model.ld CONTENT "GROUP(${built} )\n")
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/installed/strop_model.ld CONTENT "GROUP(${installed} )\n")
  install(FILES ${PROJECT_BINARY_DIR}/installed/strop_model.ld DESTINATION ${CMAKE_INSTALL_LIBDIR})

  set(STROP_LLVM_VERSION ${LLVM_VERSION_MAJOR}.${LLVM_VERSION_MINOR})
  configure_package_config_file(cmake/strop-config.cmake.in ${PROJECT_BINARY_DIR}/strop-config.cmake
                                INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/strop PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/strop-config-version.cmake COMPATIBILITY ExactVersion)
  install(FILES ${PROJECT_BINARY_DIR}/strop-config.cmake ${PROJECT_BINARY_DIR}/strop-config-version.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/strop)

  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/strop DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/strop DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.inc")
  foreach(product strop strop_pjrt_plugin)
    if(TARGET ${product})
      install(TARGETS ${product} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()
  endforeach()
endfunction()
