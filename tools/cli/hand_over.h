// The verbs that another program answers.
#pragma once

#include <CLI/CLI.hpp>

namespace tools {

// Lists them in the help.
void add_handed_over(CLI::App& app);

// Is the first word one of them?
bool is_handed_over(int argc, char** argv);

// Lets the program beside this one answer with the same words. Returns only if it cannot be started:
// an exit code, after a message.
int hand_over(char** argv);

}  // namespace tools
