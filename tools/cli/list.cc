// llmsweep list: what the spec library holds.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "sweep/spec/suggest.h"
#include "tools/cli/cli.h"

namespace tools {
namespace {

int list_libraries(const sweep::Library& library) {
  for (const std::string& name : library.libraries_and_sweeps()) {
    fmt::print("{:<14} {:>4}   llmsweep list {}\n", name, library.names(name).size(), name);
  }
  return kOk;
}

int list_names(const sweep::Library& library, const std::string& which) {
  const auto libraries = library.libraries_and_sweeps();
  if (std::find(libraries.begin(), libraries.end(), which) == libraries.end()) {
    fmt::print(stderr, "error: there is no library '{}'\n  hint: {}\n", which,
               sweep::suggestion(which, libraries, "libraries"));
    return kMistake;
  }
  for (const std::string& name : library.names(which)) {
    fmt::print("{:<24} {}\n", name, sweep::summary_of(library, which, name));
  }
  return kOk;
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string which;
    bool names = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("list", "List the spec library, or one part of it");
  verb->add_option("library", arguments->which, "devices, models, sweeps, ...");
  verb->add_flag("--names", arguments->names, "bare names only, for scripts");
  verb->callback([arguments, &exit_code] {
    const sweep::Library library = standard_library();
    if (arguments->names) {
      const auto names = arguments->which.empty() ? library.libraries_and_sweeps()
                                                  : library.names(arguments->which);
      for (const std::string& name : names) fmt::print("{}\n", name);
      exit_code = kOk;
    } else {
      exit_code = arguments->which.empty() ? list_libraries(library)
                                           : list_names(library, arguments->which);
    }
  });
}

}  // namespace tools
