// A text as one word of a shell's command line.
#pragma once

#include <string>
#include <string_view>

namespace tools {

// As it is where a shell reads it so, else in quotes.
std::string shell_word(std::string_view text);

}  // namespace tools
