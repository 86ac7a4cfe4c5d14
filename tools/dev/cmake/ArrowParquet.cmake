# Arrow and Parquet from one of three places, as the targets Arrow::arrow and Parquet::parquet:
#   system  the machine's own packages, 15 or newer
#   wheel   the C++ libraries inside the pyarrow wheel    (.deps/arrow-wheel, tools/dev/arrow_wheel.sh)
#   source  a static build of the distribution's source   (.deps/arrow-source, tools/dev/arrow_source.sh)
# `auto` takes the first that is there.

set(LLMSWEEP_ARROW auto CACHE STRING "Where Arrow comes from: auto, system, wheel or source")
set_property(CACHE LLMSWEEP_ARROW PROPERTY STRINGS auto system wheel source)
set(llmsweep_arrow_oldest 15)
set(llmsweep_wheel_dir ${PROJECT_SOURCE_DIR}/.deps/arrow-wheel)
set(llmsweep_source_dir ${PROJECT_SOURCE_DIR}/.deps/arrow-source)

# Arrow's own CMake files, from the system or from our source build. A version in find_package()
# would mean that very major version, so the oldest one we take is checked afterwards.
macro(llmsweep_arrow_from_config)
  find_package(Arrow CONFIG QUIET ${ARGN})
  find_package(Parquet CONFIG QUIET ${ARGN})
  if(Arrow_FOUND AND Parquet_FOUND AND NOT Arrow_VERSION VERSION_LESS llmsweep_arrow_oldest)
    set(LLMSWEEP_ARROW_VERSION ${Arrow_VERSION})
    set(kind shared)
    if(NOT TARGET Arrow::arrow_shared OR NOT TARGET Parquet::parquet_shared)
      set(kind static)
    endif()
    add_library(Arrow::arrow INTERFACE IMPORTED GLOBAL)
    target_link_libraries(Arrow::arrow INTERFACE Arrow::arrow_${kind})
    add_library(Parquet::parquet INTERFACE IMPORTED GLOBAL)
    target_link_libraries(Parquet::parquet INTERFACE Parquet::parquet_${kind})
  endif()
endmacro()

function(llmsweep_arrow_from_wheel)
  file(STRINGS ${llmsweep_wheel_dir}/include/arrow/util/config.h line
    REGEX "define ARROW_VERSION_STRING")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" version "${line}")
  set(LLMSWEEP_ARROW_VERSION ${version} PARENT_SCOPE)
  foreach(name arrow parquet)
    file(GLOB library ${llmsweep_wheel_dir}/lib/lib${name}.so.*)
    add_library(${name}_from_wheel SHARED IMPORTED GLOBAL)
    set_target_properties(${name}_from_wheel PROPERTIES
      IMPORTED_LOCATION ${library}
      INTERFACE_INCLUDE_DIRECTORIES ${llmsweep_wheel_dir}/include)
  endforeach()
  add_library(Arrow::arrow ALIAS arrow_from_wheel)
  add_library(Parquet::parquet ALIAS parquet_from_wheel)
  target_link_libraries(parquet_from_wheel INTERFACE arrow_from_wheel)
endfunction()

set(LLMSWEEP_ARROW_ROUTE "")
if(LLMSWEEP_ARROW MATCHES "^(auto|system)$")
  llmsweep_arrow_from_config()
  if(TARGET Arrow::arrow)
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
  llmsweep_arrow_from_config(PATHS ${llmsweep_source_dir} NO_DEFAULT_PATH)
  if(TARGET Arrow::arrow)
    set(LLMSWEEP_ARROW_ROUTE source)
  endif()
endif()
if(NOT LLMSWEEP_ARROW_ROUTE)
  message(FATAL_ERROR "No Arrow and Parquet (LLMSWEEP_ARROW=${LLMSWEEP_ARROW}). "
    "tools/run and tools/test fetch them; or run tools/dev/arrow_wheel.sh, or install "
    "libarrow-dev and libparquet-dev ${llmsweep_arrow_oldest} or newer.")
endif()
message(STATUS "Arrow ${LLMSWEEP_ARROW_VERSION} (${LLMSWEEP_ARROW_ROUTE})")

# An installed llmsweep must not look into this folder: the wheel's two libraries travel with it.
function(llmsweep_install_arrow)
  if(LLMSWEEP_ARROW_ROUTE STREQUAL "wheel")
    install(FILES $<TARGET_FILE:Arrow::arrow> $<TARGET_FILE:Parquet::parquet>
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/llmsweep)
    set_target_properties(llmsweep PROPERTIES
      INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/llmsweep")
  endif()
endfunction()
