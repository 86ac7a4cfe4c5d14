# Tells one file what was built: LLMSWEEP_VERSION, LLMSWEEP_COMPILER and LLMSWEEP_COMMIT, all string
# literals. The commit is looked up at every build, but its header is rewritten (and the file compiled
# again) only when it has changed.

# As a script (cmake -P): write the header.
if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT commit)
    set(commit unknown)
  endif()
  set(text "#define LLMSWEEP_COMMIT \"${commit}\"\n")
  if(EXISTS ${HEADER})
    file(READ ${HEADER} before)
  endif()
  if(NOT text STREQUAL "${before}")
    file(WRITE ${HEADER} "${text}")
  endif()
  return()
endif()

function(llmsweep_stamp file)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${file})
    return()
  endif()
  set(header ${PROJECT_BINARY_DIR}/generated/commit.h)
  set(write ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DHEADER=${header}
    -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE})
  execute_process(COMMAND ${write})
  add_custom_target(llmsweep_commit COMMAND ${write} BYPRODUCTS ${header} VERBATIM)
  add_dependencies(llmsweep_engine llmsweep_commit)
  set_source_files_properties(${file} PROPERTIES
    COMPILE_OPTIONS "-include;${header}"
    OBJECT_DEPENDS ${header}
    SKIP_PRECOMPILE_HEADERS ON)
  set_property(SOURCE ${file} APPEND PROPERTY COMPILE_DEFINITIONS
    LLMSWEEP_VERSION="${PROJECT_VERSION}"
    LLMSWEEP_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
endfunction()
