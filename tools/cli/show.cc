// llmsweep show: one spec with every field resolved.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/leaves/leaves.h"
#include "sweep/language/suggest.h"
#include "sweep/language/write_yaml.h"
#include "tools/cli/cli.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct Place {
  std::string library;
  std::string name;
};

// "h100-sxm" in any library, or "devices/h100-sxm" in one.
std::vector<Place> find_places(const sweep::Library& library, const std::string& wanted) {
  const auto slash = wanted.find('/');
  std::vector<Place> places;
  for (const std::string& folder : library.libraries_and_sweeps()) {
    if (slash != std::string::npos && wanted.substr(0, slash) != folder) continue;
    const std::string name = slash == std::string::npos ? wanted : wanted.substr(slash + 1);
    if (library.find(folder, name)) places.push_back({folder, name});
  }
  return places;
}

std::vector<std::string> all_names(const sweep::Library& library) {
  std::vector<std::string> names;
  for (const std::string& folder : library.libraries_and_sweeps()) {
    for (std::string& name : library.names(folder)) names.push_back(std::move(name));
  }
  return names;
}

// The formats a model is published in, as its file says them; nothing where they are those of any model.
std::string formats_yaml(const engine::Quantization& quant) {
  engine::Scenario only_formats;
  only_formats.quant = quant;
  return sweep::fields_yaml(only_formats, nullptr, sweep::LeavesToWrite::all_but_defaults);
}

engine::Result<std::string> resolved(const sweep::Library& library, const Place& place,
                                     const std::filesystem::path& file) {
  if (std::ranges::find(sweep::kSweepFolders, place.library) != sweep::kSweepFolders.end()) {
    auto spec = sweep::read_sweep(file, library);
    if (!spec) return spec.mistakes();
    return sweep::resolved_yaml(*spec);
  }
  const auto spec = sweep::read_named(library, place.library, place.name);
  if (!spec) return spec.mistakes();
  const engine::LeafTable& table = engine::leaf_table();
  const int section = table.find_section(spec->section);
  std::string text = sweep::fields_yaml(spec->scenario, &table.sections[std::size_t(section)],
                                        sweep::LeavesToWrite::all);
  if (place.library == "models") text += formats_yaml(spec->scenario.quant);
  return text;
}

int show(const std::string& wanted) {
  const sweep::Library library = standard_library();
  const auto places = find_places(library, wanted);
  if (places.empty()) {
    const auto names = sweep::likely(wanted, all_names(library));
    print(stderr, "error: nothing in the library is called '{}'\n  hint: {}\n", wanted,
          names.empty() ? "'llmsweep list' shows what there is" : sweep::did_you_mean(names));
    return kMistake;
  }
  int code = kOk;
  for (const Place& place : places) {
    const std::filesystem::path file = *library.find(place.library, place.name);
    const auto text = resolved(library, place, file);
    if (text) {
      print("# {}/{}, from {}\n{}", place.library, place.name, file.string(), *text);
    } else {
      print(stderr, "{}", engine::to_text(text.mistakes()));
      code = kMistake;
    }
  }
  return code;
}

}  // namespace

void add_show(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string name;
    bool names = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("show", "Show a spec of the library, every field resolved");
  verb->footer(
      "  llmsweep show h100-sxm; llmsweep show links/nvlink-4; llmsweep show sweeps/first_sweep");
  verb->add_option("name", arguments->name, "a device, model, sweep, ...")->type_name("NAME");
  verb->add_flag("--names", arguments->names, "print every name there is, for scripts");
  verb->callback([arguments, &exit_code] {
    if (arguments->names) {
      for (const std::string& name : all_names(standard_library())) print("{}\n", name);
      exit_code = kOk;
    } else if (arguments->name.empty()) {
      print(stderr, "error: show needs a name\n  hint: 'llmsweep list devices' has some\n");
      exit_code = kMistake;
    } else {
      exit_code = show(arguments->name);
    }
  });
}

}  // namespace tools
