# Compiler flags: warnings for everything, instruction sets by file suffix, sanitizers by preset, nothing else.
add_compile_options(
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla
  -Wdouble-promotion -fno-math-errno -ffp-contract=off)
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-pass-failed) # an unroll request that clang declines is no fault
endif()
option(PITH_WERROR "Warnings are errors" ON)
if(PITH_WERROR)
  add_compile_options(-Werror)
endif()

# gcc does not align Windows' stack for vectors of 32 and 64 bytes (gcc bug 54412), so no move may rely on it.
if(MINGW AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wa,-muse-unaligned-vector-move)
endif()

# PITH_SANITIZE=address,undefined or thread: the asan, tsan and hostile presets.
set(PITH_SANITIZE "" CACHE STRING "Sanitizers to build with")
if(PITH_SANITIZE)
  add_compile_options(-fsanitize=${PITH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PITH_SANITIZE})
endif()

# PITH_HOSTILE: freed and fresh memory is poisoned, so that code which reads either is caught by its results.
option(PITH_HOSTILE "Poison memory" OFF)
if(PITH_HOSTILE)
  add_compile_definitions(PITH_HOSTILE=1)
endif()
option(PITH_FUZZ "Build the fuzz targets with libFuzzer (clang)" OFF)
if(PITH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Sanitizers multiply the code of kernels, whose loops are unrolled: at -O2 GCC takes minutes for one file, at -O1 15 seconds.
set(PITH_TIER_SANITIZED "")
if(PITH_SANITIZE)
  set(PITH_TIER_SANITIZED -O1 -g1)
endif()

# A file NAME_<suffix>.c is compiled for that tier (src/cpu/cpu.h); every other file is baseline.
set(PITH_TIER_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(PITH_TIER_FLAGS_avxvnni -mavx2 -mfma -mf16c -mavxvnni)
set(PITH_TIER_FLAGS_avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni)
set(PITH_TIER_FLAGS_amx ${PITH_TIER_FLAGS_avx512} -mamx-tile -mamx-int8)
set(PITH_TIER_FLAGS_neon "")
set(PITH_TIER_FLAGS_dotprod -march=armv8.2-a+dotprod+fp16)
set(PITH_TIER_FLAGS_i8mm -march=armv8.2-a+dotprod+fp16+i8mm)

function(pith_tier_flags)
  foreach(file ${ARGN})
    foreach(tier avx2 avxvnni avx512 amx neon dotprod i8mm)
      if(file MATCHES "_${tier}\\.c$")
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${PITH_TIER_FLAGS_${tier}};${PITH_TIER_SANITIZED}")
      endif()
    endforeach()
  endforeach()
endfunction()
