#include "tools/cli/shell_command.h"

namespace tools {

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
