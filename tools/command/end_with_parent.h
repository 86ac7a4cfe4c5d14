// A program that another one started for itself ends with it.
#pragma once

namespace tools {

// Set by who starts this program: the number of its process. The kernel then ends this program, as Ctrl-C would, once that one
// is gone, however it went. Without the variable nothing happens: a shell's job outlives its shell.
constexpr const char* kParentVariable = "LLMSWEEP_PARENT";

void end_with_parent();

}  // namespace tools
