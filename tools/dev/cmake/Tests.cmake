# llmsweep_tests (tests/**/*_test.cc), Python tests (tests/**/*_test.py), the format and layer checks, and
# llmsweep_bench (tests/bench, built only when asked for: cmake --build ... --target llmsweep_bench).

set(LLMSWEEP_PYTHON ${PROJECT_SOURCE_DIR}/.deps/py/bin/python CACHE FILEPATH
  "Python with the dataframe packages the tests read results with; tools/test makes it")
set(LLMSWEEP_TESTS "" CACHE STRING "Compile only the tests whose path matches this, for a quick inner loop")
set(llmsweep_test_timeout 900)

# What a test may want to know: where the tree, the command and the data beside the tree are.
set(llmsweep_test_paths
  LLMSWEEP_SOURCE_DIR=${PROJECT_SOURCE_DIR}
  LLMSWEEP_SHARED_DIR=${PROJECT_SOURCE_DIR}/../shared
  LLMSWEEP_BINARY=${PROJECT_BINARY_DIR}/llmsweep)

function(llmsweep_test_program target)
  llmsweep_defaults(${target})
  target_link_libraries(${target} PRIVATE ${llmsweep_libraries} fmt::fmt
    yaml-cpp::yaml-cpp muparser::muparser nlohmann_json::nlohmann_json TBB::tbb ZLIB::ZLIB
    llmsweep_arrow)
endfunction()

# Tests and benchmarks that call the commands want them built before them.
function(llmsweep_calls_command target)
  foreach(command llmsweep llmsweep-calibrate)
    if(TARGET ${command})
      add_dependencies(${target} ${command})
    endif()
  endforeach()
endfunction()

# Toy devices and the like, shared by tests and benchmarks.
foreach(path IN LISTS llmsweep_test_paths)
  string(REGEX REPLACE "=(.*)" "=\"\\1\"" definition ${path})
  list(APPEND path_definitions ${definition})
endforeach()
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/support/paths.cc PROPERTIES
  COMPILE_DEFINITIONS "${path_definitions}")
file(GLOB_RECURSE support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cc)
list(FILTER support_sources EXCLUDE REGEX "_test[.]cc$")
set(llmsweep_support)
find_package(GTest REQUIRED)
if(support_sources)
  add_library(llmsweep_test_support STATIC ${support_sources})
  llmsweep_test_program(llmsweep_test_support)
  target_link_libraries(llmsweep_test_support PUBLIC GTest::gmock GTest::gtest)
  set(llmsweep_support llmsweep_test_support)
endif()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
list(FILTER test_sources EXCLUDE REGEX "/tests/bench/")
if(LLMSWEEP_TESTS)
  list(FILTER test_sources INCLUDE REGEX "${LLMSWEEP_TESTS}")
endif()
if(test_sources)
  include(GoogleTest)
  add_executable(llmsweep_tests ${test_sources})
  llmsweep_test_program(llmsweep_tests)
  llmsweep_calls_command(llmsweep_tests)
  target_link_libraries(llmsweep_tests
    PRIVATE ${llmsweep_support} GTest::gmock GTest::gtest GTest::gtest_main)
  llmsweep_run_once(llmsweep_tests)
  # Lines of tests are of no use in a backtrace: a failed expectation names its own.
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    target_compile_options(llmsweep_tests PRIVATE $<$<CONFIG:Release>:-g0>)
  endif()
  # A third of a test's compile time. Not where ccache does better: it cannot keep what was compiled with
  # precompiled headers.
  if(LLMSWEEP_SANITIZE OR NOT CMAKE_CXX_COMPILER_LAUNCHER)
    target_precompile_headers(llmsweep_tests PRIVATE
      <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <filesystem> <fstream> <functional> <map> <sstream>)
  endif()
  gtest_discover_tests(llmsweep_tests
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 120
    PROPERTIES TIMEOUT ${llmsweep_test_timeout} ENVIRONMENT LLMSWEEP_PYTHON=${LLMSWEEP_PYTHON})
endif()

# What tests/durability puts between a program and the C library. Not beside a sanitizer, whose library has to come first.
if(NOT LLMSWEEP_SANITIZE)
  add_library(llmsweep_file_shim MODULE ${PROJECT_SOURCE_DIR}/tests/durability/file_shim.cc)
  set_target_properties(llmsweep_file_shim PROPERTIES PREFIX "" SUFFIX ".so")
  target_compile_features(llmsweep_file_shim PRIVATE cxx_std_20)
  target_link_libraries(llmsweep_file_shim PRIVATE ${CMAKE_DL_LIBS})
endif()

file(GLOB_RECURSE python_tests CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/tests/*_test.py)
foreach(test IN LISTS python_tests)
  add_test(NAME ${test} COMMAND ${LLMSWEEP_PYTHON} ${PROJECT_SOURCE_DIR}/${test})
  # What nothing of could run, for want of a browser or a cluster, is skipped, not passed.
  set_tests_properties(${test} PROPERTIES TIMEOUT ${llmsweep_test_timeout}
    SKIP_REGULAR_EXPRESSION "Ran 0 tests in"
    ENVIRONMENT "${llmsweep_test_paths};LLMSWEEP_PYTHON=${LLMSWEEP_PYTHON}")
endforeach()

# llmsweep_fuzz replays the seeds of tests/fuzz and a fixed number of inputs made from them. Built by
# tools/dev/fuzz with a compiler that has libFuzzer, llmsweep_libfuzzer looks for inputs by coverage.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cc)
list(FILTER fuzz_sources EXCLUDE REGEX "_main[.]cc$")
if(fuzz_sources)
  add_library(llmsweep_fuzz_targets STATIC ${fuzz_sources})
  llmsweep_test_program(llmsweep_fuzz_targets)
  target_link_libraries(llmsweep_fuzz_targets PRIVATE ${llmsweep_support})
  add_executable(llmsweep_fuzz tests/fuzz/fuzz_main.cc)
  llmsweep_test_program(llmsweep_fuzz)
  target_link_libraries(llmsweep_fuzz PRIVATE llmsweep_fuzz_targets ${llmsweep_support})
  add_test(NAME fuzz_smoke COMMAND llmsweep_fuzz all)
  set_tests_properties(fuzz_smoke PROPERTIES TIMEOUT ${llmsweep_test_timeout})
  if(LLMSWEEP_SANITIZE MATCHES "fuzzer")
    add_executable(llmsweep_libfuzzer tests/fuzz/libfuzzer_main.cc)
    llmsweep_test_program(llmsweep_libfuzzer)
    target_link_libraries(llmsweep_libfuzzer PRIVATE llmsweep_fuzz_targets ${llmsweep_support})
    target_link_options(llmsweep_libfuzzer PRIVATE -fsanitize=fuzzer)
  endif()
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(dev ${PROJECT_SOURCE_DIR}/tools/dev)
add_test(NAME format COMMAND ${dev}/format --check)
foreach(check layers duplicates)
  add_test(NAME ${check} COMMAND ${Python3_EXECUTABLE} -I ${dev}/check_${check}.py)
  add_test(NAME ${check}_check_itself COMMAND ${Python3_EXECUTABLE} ${dev}/check_${check}_test.py)
endforeach()

file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/bench/*.cc)
if(bench_sources)
  find_package(benchmark REQUIRED)
  add_executable(llmsweep_bench EXCLUDE_FROM_ALL ${bench_sources})
  llmsweep_test_program(llmsweep_bench)
  llmsweep_calls_command(llmsweep_bench)
  target_link_libraries(llmsweep_bench
    PRIVATE ${llmsweep_support} benchmark::benchmark benchmark::benchmark_main)
endif()
