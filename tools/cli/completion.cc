// llmsweep completion: a script that lets the shell complete verbs, options and names.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "tools/cli/cli.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

// Everything is taken from the parser, or from the help of a verb that another program answers, so a new
// verb or option completes at once.
std::string option_words(const CLI::App& verb) {
  std::string words;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) words += " --" + name;
    for (const std::string& name : option->get_snames()) words += " -" + name;
  }
  return words.empty() ? words : words.substr(1);
}

std::string script(const CLI::App& app) {
  std::string verbs, cases;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    verbs += (verbs.empty() ? "" : " ") + verb->get_name();
    cases += fmt::format("    {}) _llmsweep_offer < <(printf '%s\\n' {}) ;;\n", verb->get_name(),
                         option_words(*verb));
  }
  // Names are lines, never words of the shell: a spec's name may hold blanks, or what a shell would run.
  return fmt::format(R"sh(_llmsweep_offer() {{
  local word
  while IFS= read -r word; do
    case "$word" in "$current"*) COMPREPLY+=("$word") ;; esac
  done
}}
_llmsweep() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" verb="${{COMP_WORDS[1]}}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    _llmsweep_offer < <(printf '%s\n' {} --help)
    return
  fi
  case "$verb" in
{}  esac
  case "$verb" in
    list | show) _llmsweep_offer < <(llmsweep "$verb" --names 2>/dev/null) ;;
    completion) _llmsweep_offer < <(printf '%s\n' bash zsh) ;;
    kernels | validate | calibrate)
      _llmsweep_offer < <(llmsweep "$verb" --help 2>/dev/null | grep -oE -- '--[a-z-]+') ;;
  esac
  [ "${{current:0:1}}" != - ] || return 0
  case "$verb" in
    run | check | explain | trace | slurm | import) _llmsweep_offer < <(compgen -f -X '!*.y*ml' -- "$current") ;;
  esac
  case "$verb" in
    list | show | describe | completion | version | evaluate) ;;
    *) _llmsweep_offer < <(compgen -d -- "$current") ;;
  esac
}}
complete -o filenames -F _llmsweep llmsweep
)sh",
                     verbs, cases);
}

}  // namespace

void add_completion(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>("bash");
  CLI::App* verb = app.add_subcommand("completion", "Print a completion script for the shell");
  verb->footer(
      "  source <(llmsweep completion bash)      in ~/.bashrc; 'zsh' likewise in ~/.zshrc");
  verb->add_option("shell", *shell, "bash or zsh")->check(CLI::IsMember({"bash", "zsh"}));
  verb->callback([shell, &app, &exit_code] {
    if (*shell == "zsh") print("autoload -U +X bashcompinit && bashcompinit\n");
    print("{}", script(app));
    exit_code = kOk;
  });
}

}  // namespace tools
