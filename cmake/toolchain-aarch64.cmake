# Linux on ARM with Debian's cross compiler. The libraries, headers and libc are those that script/cross-libraries
# unpacks: a Debian arm64 root, which the linker and qemu take as their root too. Tests run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

include(${CMAKE_CURRENT_LIST_DIR}/cross_cache.cmake)
pith_cross_cache(aarch64 CMAKE_SYSROOT)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)

# PITH_QEMU_CPU: another processor than qemu's `max` (cortex-a53 has no dot product, neoverse-n1 has).
set(PITH_QEMU_CPU max CACHE STRING "The processor that qemu shows to the tests")
set(PITH_TEST_BRIEF ON) # floats are emulated one by one: see tests/support/brief.h
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-cpu;${PITH_QEMU_CPU};-L;${CMAKE_SYSROOT})
