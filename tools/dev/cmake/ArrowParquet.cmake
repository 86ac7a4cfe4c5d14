# Arrow and Parquet from one of three places, as the one target llmsweep_arrow. Under it are Arrow's own
# names, Arrow::arrow_shared and Parquet::parquet_shared, or ..._static.
#   system  the machine's own packages, 15 or newer: shared, or static if only that is there
#   wheel   the C++ libraries inside the pyarrow wheel    (.deps/arrow-wheel, tools/dev/arrow_wheel.sh)
#   source  a static build of the distribution's source   (.deps/arrow-source, tools/dev/arrow_source.sh)
# `auto` takes the first that is there.

set(LLMSWEEP_ARROW auto CACHE STRING "Where Arrow comes from: auto, system, wheel or source")
set_property(CACHE LLMSWEEP_ARROW PROPERTY STRINGS auto system wheel source)
set(llmsweep_arrow_oldest 15)
set(llmsweep_wheel_dir ${PROJECT_SOURCE_DIR}/.deps/arrow-wheel)
set(llmsweep_source_dir ${PROJECT_SOURCE_DIR}/.deps/arrow-source)

# Arrow's own CMake files, from the system or from our source build. Targets once defined stay, and an
# unusable Arrow's would be in the way of the next place's: so ask first for a version nobody has, which
# only lists what is there, and load one that will do. Parquet's files load Arrow's.
macro(llmsweep_arrow_from_config)
  find_package(Parquet 1000000 CONFIG QUIET)
  foreach(version IN LISTS Parquet_CONSIDERED_VERSIONS)
    if(NOT version VERSION_LESS llmsweep_arrow_oldest AND NOT llmsweep_arrow_kind)
      find_package(Parquet ${version} EXACT CONFIG QUIET)
      if(TARGET Arrow::arrow_shared AND TARGET Parquet::parquet_shared)
        set(llmsweep_arrow_kind shared)
      elseif(TARGET Arrow::arrow_static AND TARGET Parquet::parquet_static)
        set(llmsweep_arrow_kind static)
      endif()
      set(LLMSWEEP_ARROW_VERSION ${version})
    endif()
  endforeach()
endmacro()

function(llmsweep_arrow_from_wheel)
  file(STRINGS ${llmsweep_wheel_dir}/include/arrow/util/config.h line
    REGEX "define ARROW_VERSION_STRING")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" version "${line}")
  set(LLMSWEEP_ARROW_VERSION ${version} PARENT_SCOPE)
  foreach(target Arrow::arrow_shared Parquet::parquet_shared)
    string(REGEX REPLACE ".*::(.*)_shared" "\\1" name ${target})
    file(GLOB library ${llmsweep_wheel_dir}/lib/lib${name}.so.*)
    add_library(${target} SHARED IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION ${library}
      INTERFACE_INCLUDE_DIRECTORIES ${llmsweep_wheel_dir}/include)
  endforeach()
  target_link_libraries(Parquet::parquet_shared INTERFACE Arrow::arrow_shared)
  set(llmsweep_arrow_kind shared PARENT_SCOPE)
endfunction()

set(LLMSWEEP_ARROW_ROUTE "")
set(llmsweep_arrow_kind "")
if(LLMSWEEP_ARROW MATCHES "^(auto|system)$")
  llmsweep_arrow_from_config()
  if(llmsweep_arrow_kind)
    set(LLMSWEEP_ARROW_ROUTE system)
  endif()
endif()
if(NOT LLMSWEEP_ARROW_ROUTE AND LLMSWEEP_ARROW MATCHES "^(auto|wheel)$"
   AND EXISTS ${llmsweep_wheel_dir})
  llmsweep_arrow_from_wheel()
  set(LLMSWEEP_ARROW_ROUTE wheel)
endif()
if(NOT LLMSWEEP_ARROW_ROUTE AND LLMSWEEP_ARROW MATCHES "^(auto|source)$"
   AND EXISTS ${llmsweep_source_dir})
  list(PREPEND CMAKE_PREFIX_PATH ${llmsweep_source_dir})
  llmsweep_arrow_from_config()
  if(llmsweep_arrow_kind)
    set(LLMSWEEP_ARROW_ROUTE source)
  endif()
endif()
if(NOT LLMSWEEP_ARROW_ROUTE)
  message(FATAL_ERROR "No Arrow and Parquet (LLMSWEEP_ARROW=${LLMSWEEP_ARROW}). "
    "tools/run and tools/test fetch them; or run tools/dev/arrow_wheel.sh, or install "
    "libarrow-dev and libparquet-dev ${llmsweep_arrow_oldest} or newer.")
endif()
add_library(llmsweep_arrow INTERFACE)
target_link_libraries(llmsweep_arrow INTERFACE
  Parquet::parquet_${llmsweep_arrow_kind} Arrow::arrow_${llmsweep_arrow_kind})
message(STATUS "Arrow ${LLMSWEEP_ARROW_VERSION} (${LLMSWEEP_ARROW_ROUTE}, ${llmsweep_arrow_kind})")

# Where the command looks for shared libraries. CMake's own way leaves an empty element in the path of
# a program that is to be installed, and an empty element means the working directory: whoever may write
# there could have a library of theirs loaded. So the path is stated, and changed at installation.
function(llmsweep_library_path target)
  set_target_properties(${target} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH_USE_LINK_PATH ON)
  # The older kind of path also holds for libraries that libraries ask for, which a package carries, too.
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
  if(NOT LLMSWEEP_ARROW_ROUTE STREQUAL "wheel")
    return()
  endif()
  # An installed llmsweep must not look into this folder: the wheel's two libraries travel with it.
  set(built ${llmsweep_wheel_dir}/lib)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH ${built})
  install(FILES $<TARGET_FILE:Arrow::arrow_shared> $<TARGET_FILE:Parquet::parquet_shared>
    DESTINATION lib/llmsweep)
  install(CODE "set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/${target}\")
    if(EXISTS \"\${file}\")
      file(RPATH_CHANGE FILE \"\${file}\" OLD_RPATH \"${built}\" NEW_RPATH \"\$ORIGIN/../lib/llmsweep\")
    endif()")
endfunction()
