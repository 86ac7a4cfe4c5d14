# What every target of ours is compiled with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Warnings stop the build on the compilers CI knows; on another one they are only shown.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
  set(llmsweep_known_compiler ON)
else()
  set(llmsweep_known_compiler OFF)
endif()
option(LLMSWEEP_WERROR "Treat warnings in our own code as errors" ${llmsweep_known_compiler})
set(LLMSWEEP_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize= takes them")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Numbers that do not fit what they become. Left to clang: gcc also reports every count that becomes a double.
set(llmsweep_clang_warnings -Wconversion -Wno-sign-conversion -Wno-implicit-int-float-conversion)

# What makes a mistake of ours harder to use: addresses differ from run to run (PIE), nothing the loader
# has resolved can be overwritten (full RELRO), and an overrun stack or buffer ends the program.
# tests/tools/hardening_test.py reads the built program's header for it.
function(llmsweep_harden target)
  target_compile_options(${target} PRIVATE -fPIE -fstack-protector-strong)
  target_link_options(${target} PRIVATE -pie)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
  endif()
  # The checks of sizes need an optimiser, and the sanitizers have their own. A distribution's compiler
  # may define another level by itself, hence the -U.
  set(level 2)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    set(level 3)
  endif()
  if(NOT LLMSWEEP_SANITIZE)
    target_compile_options(${target} PRIVATE
      $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=${level}>)
  endif()
endfunction()

function(llmsweep_defaults target)
  llmsweep_harden(${target})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  # Contraction would let one machine fuse a*b+c where another rounds twice: rows must not depend on it.
  target_compile_options(${target} PRIVATE
    -ffp-contract=off
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
    # Structs have defaults; naming only the fields that differ is how we write values.
    -Wno-missing-field-initializers)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # These see through inlined standard library code and report what is not there.
    target_compile_options(${target} PRIVATE
      -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread
      -Wno-array-bounds)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE ${llmsweep_clang_warnings})
  endif()
  if(LLMSWEEP_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(LLMSWEEP_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${LLMSWEEP_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${LLMSWEEP_SANITIZE})
  endif()
endfunction()

# For code that is run once and is mostly templates or macros of a package (option parsing, tests):
# optimising it takes longer than running it.
function(llmsweep_run_once target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Debug>:-O0>)
endfunction()

# llmsweep_rooms(TARGET [TOGETHER]): compiles the files of a folder together (TOGETHER: those of all its folders), so
# that what they all include is read once and not once a file: most of the time that compiling them one by one takes.
# The dev preset turns it off, for the quickest way from an edit of one file to a program.
option(LLMSWEEP_ROOMS "Compile the files of a folder together" ON)
function(llmsweep_rooms target)
  if(NOT LLMSWEEP_ROOMS)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR} ${folder})
    string(REPLACE "/" "_" room ${room})
    if("TOGETHER" IN_LIST ARGN)
      set(room ${target})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes every file for a header that others include as well.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
