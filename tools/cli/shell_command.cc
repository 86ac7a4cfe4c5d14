#include "tools/cli/shell_command.h"

#include <algorithm>
#include <cctype>

namespace tools {

std::string shell_word(std::string_view text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./=:,@%+").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return std::string(text);
  // Inside single quotes a shell reads everything as it is, but for the quote itself.
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string given_command(std::string_view program, const CLI::App& verb) {
  std::string command = shell_word(program) + " " + verb.get_name();
  std::string options;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0) continue;
    if (option->get_positional()) {
      for (const std::string& result : option->results()) command += " " + shell_word(result);
      continue;
    }
    options += " " + option->get_name();
    const bool is_flag = option->get_items_expected_max() == 0;
    if (is_flag) continue;
    for (const std::string& result : option->results()) options += " " + shell_word(result);
  }
  return command + options;
}

}  // namespace tools
