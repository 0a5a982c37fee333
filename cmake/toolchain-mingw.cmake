# Windows on x86-64 with Debian's mingw-w64. script/cross-libraries builds the static libraries. Programs need no DLL
# beyond those of Windows; tests run under wine, whose state lies in the build folder.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)

include(${CMAKE_CURRENT_LIST_DIR}/cross_cache.cmake)
pith_cross_cache(mingw CMAKE_FIND_ROOT_PATH)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_FIND_ROOT_PATH}/lib/pkgconfig)

# printf of C99 rather than msvcrt's; mingw's isnan and isfinite warn of float conversions in their own expansion.
set(CMAKE_C_FLAGS_INIT
  "-DPCRE2_STATIC -DUTF8PROC_STATIC -D__USE_MINGW_ANSI_STDIO=1 -Wno-float-conversion")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
set(PITH_TEST_BRIEF ON) # the processor is the one that the plain build tests: see tests/support/brief.h
# Debian's wine64 has no program on PATH. A UTF-8 locale, or wine loses what is not ASCII in arguments.
set(CMAKE_CROSSCOMPILING_EMULATOR
  env;LC_ALL=C.UTF-8;WINEDEBUG=-all;WINEPREFIX=${CMAKE_BINARY_DIR}/wine;/usr/lib/wine/wine64)
