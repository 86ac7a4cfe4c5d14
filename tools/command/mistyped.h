// What a mistyped verb or option was probably meant to be.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace tools {

// The message for a first word that is no verb, or nothing where it is one.
std::optional<std::string> unknown_verb(const CLI::App& app, int argc, char** argv);

// "hint: did you mean '--threads'?" for the first option that the verb does not have, or empty.
std::string option_hint(const CLI::App& app, int argc, char** argv);

}  // namespace tools
