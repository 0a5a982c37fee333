# `cmake --install build/release --prefix P`: the program, the library, the header, licence, and P/lib/pkgconfig/pith.pc, which says how
# to link. What only the build needs (rooms' headers, tests) stays behind.
include(GNUInstallDirs)
install(TARGETS pith ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET pith-program)
  install(TARGETS pith-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${CMAKE_SOURCE_DIR}/include/pith.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
configure_file(${CMAKE_SOURCE_DIR}/cmake/pith.pc.in ${CMAKE_BINARY_DIR}/pith.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/pith.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
