#include "tools/command/mistyped.h"

#include <string_view>
#include <vector>

#include "sweep/language/suggest.h"

namespace tools {
namespace {

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::optional<std::string> unknown_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  const std::string word = argv[1];
  const std::vector<std::string> verbs = verbs_of(app);
  for (const std::string& verb : verbs) {
    if (verb == word) return std::nullopt;
  }
  std::string text = "error: there is no verb '" + word + "'\n  hint: ";
  if (word == "help") return text + "write 'llmsweep --help' or 'llmsweep run --help'\n";
  if (word.ends_with(".yaml")) return text + "did you mean 'llmsweep run " + word + "'?\n";
  return text + sweep::suggestion(word, verbs, "verbs") + "\n";
}

std::string option_hint(const CLI::App& app, int argc, char** argv) {
  const auto used = app.get_subcommands();
  const std::vector<std::string> known = options_of(used.empty() ? app : *used.front());
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--")) continue;
    const std::string name(word.substr(0, word.find('=')));
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::vector<std::string> names = sweep::likely(name, known);
    if (!names.empty()) return "  hint: " + sweep::did_you_mean(names) + "\n";
  }
  return "";
}

}  // namespace tools
