# Finds the packages we build on and gives each one target name, whatever its version calls it.

# Headers only, or a library without a CMake file of its own: target, header, optional library.
function(llmsweep_plain_package target header)
  find_path(${target}_INCLUDE ${header} REQUIRED)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  if(ARGN)
    find_library(${target}_LIBRARY NAMES ${ARGN} REQUIRED)
    target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
  endif()
  mark_as_advanced(${target}_INCLUDE ${target}_LIBRARY)
endfunction()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(TBB REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp)  # before 0.8 the target had no namespace
  add_library(yaml-cpp::yaml-cpp INTERFACE IMPORTED GLOBAL)
  target_link_libraries(yaml-cpp::yaml-cpp INTERFACE yaml-cpp)
endif()

llmsweep_plain_package(Random123::Random123 Random123/philox.h)
llmsweep_plain_package(xxHash::xxhash xxhash.h xxhash)
llmsweep_plain_package(muparser::muparser muParser.h muparser)

include(ArrowParquet)
