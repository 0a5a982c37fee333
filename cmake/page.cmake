# The page of `pith serve` and its history: sets pith_page_sources, for apps/CMakeLists.txt.
#   history   history_*.c with SQLite, else history_none.c
#   page      apps/web becomes page/page_data.c in the build folder, by node and packages of npm (apps/web/build.mjs). Without node or npm,
#             or with -DPITH_PAGE=OFF, that file says why there is no page; where packages cannot be fetched, build.mjs writes it the same
#             way and tries again with the next build. No build fails for lack of a page.
option(PITH_PAGE "Build the page of pith serve (needs node, npm and for its first time the network)" ON)
set(pith_page_sources "")
if(NOT MICROHTTPD_FOUND OR WIN32)
  return()
endif()

set(history history_route)
if(SQLITE_FOUND)
  list(APPEND history chat_history history_store history_search)
else()
  message(STATUS "SQLite was not found: pith serve keeps no conversations")
  list(APPEND history history_none)
endif()
foreach(name ${history})
  list(APPEND pith_page_sources ${CMAKE_CURRENT_SOURCE_DIR}/server/${name}.c)
endforeach()

find_program(PITH_NODE node)
find_program(PITH_NPM npm)
set(page_folder ${CMAKE_BINARY_DIR}/page)
set(page_data ${page_folder}/page_data.c)
set(page_absence "")
if(NOT PITH_PAGE)
  set(page_absence "it was configured with PITH_PAGE=OFF")
elseif(NOT PITH_NODE OR NOT PITH_NPM)
  set(page_absence "node and npm were not there (script/bootstrap page installs them; then configure and build again)")
endif()
if(page_absence)
  message(STATUS "pith serve has no page: ${page_absence}")
  file(CONFIGURE OUTPUT ${page_folder}/page_none.c CONTENT
"/* Made by cmake/page.cmake. */
#include \"server/page_file.h\"
const pith_page_file pith_page = {.absence = \"${page_absence}\"};
")
  list(APPEND pith_page_sources ${page_folder}/page_none.c)
else()
  file(GLOB_RECURSE page_inputs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/web/*)
  list(FILTER page_inputs EXCLUDE REGEX "/node_modules/")
  add_custom_command(OUTPUT ${page_data}
    COMMAND ${PITH_NODE} ${CMAKE_CURRENT_SOURCE_DIR}/web/build.mjs ${page_folder} ${PITH_NPM}
    DEPENDS ${page_inputs} COMMENT "Building the page of pith serve" VERBATIM)
  list(APPEND pith_page_sources ${page_data})
endif()
