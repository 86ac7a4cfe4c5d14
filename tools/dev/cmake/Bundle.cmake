# `cpack` in a build folder: a tarball that runs wherever it is unpacked, and a .deb of the same files. Both carry every
# library but the C library's own, so that neither asks for packages, a compiler or (the tarball) root.

# What a machine has in any case, and what must be its own: the C library and the loader.
set(llmsweep_not_carried "/(ld-linux[^/]*|ld-musl[^/]*|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl)\\.so[^/]*|linux-vdso[^/]*)$")

# Only on request (cpack asks): an installation on this machine uses this machine's libraries.
install(CODE "
  set(programs)
  foreach(program llmsweep llmsweep-calibrate)
    if(EXISTS \"${PROJECT_BINARY_DIR}/\${program}\")
      list(APPEND programs \"${PROJECT_BINARY_DIR}/\${program}\")
    endif()
  endforeach()
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \${programs}
    RESOLVED_DEPENDENCIES_VAR found POST_EXCLUDE_REGEXES [==[${llmsweep_not_carried}]==])
  foreach(library \${found})
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/llmsweep\" TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN FILES \"\${library}\")
  endforeach()
  # Installed programs look there; those that were linked with the system's Arrow do not yet.
  foreach(program llmsweep llmsweep-calibrate)
    set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/\${program}\")
    if(EXISTS \"\${file}\")
      file(RPATH_SET FILE \"\${file}\" NEW_RPATH \"\\\$ORIGIN/../lib/llmsweep\")
    endif()
  endforeach()
" COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};${PROJECT_NAME};ALL;/" "${PROJECT_BINARY_DIR};${PROJECT_NAME};bundle;/")
set(CPACK_PACKAGE_NAME llmsweep)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Design-space sweeps of LLM training and serving systems")
set(CPACK_PACKAGE_CONTACT "the llmsweep authors <nobody@localhost>")
set(CPACK_PACKAGE_FILE_NAME ${PROJECT_NAME}-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_RESOURCE_FILE_README ${PROJECT_SOURCE_DIR}/README.md)
# The C library that it was linked with, or a newer one.
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE llmsweep_libc OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(llmsweep_libc MATCHES "([0-9]+[.][0-9]+)")
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${CMAKE_MATCH_1})")
endif()
set(CPACK_DEBIAN_FILE_NAME ${CPACK_PACKAGE_FILE_NAME}.deb)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
include(CPack)
