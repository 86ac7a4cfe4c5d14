#include "tools/cli/cli.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>

#include "results/run_manifests.h"
#include "sweep/language/parse_quantity.h"
#include "tools/terminal/terminal.h"

namespace tools {

CLI::Validator above_zero() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto number = sweep::parse_number(text);
        return number && *number > 0 ? std::string()
                                     : fmt::format("'{}' is not a number above 0", text);
      },
      "");
}

CLI::Validator whole_above_zero() {
  return CLI::Validator(
      [](std::string& text) {
        const auto number = sweep::parse_number(text);
        if (!number || *number <= 0) return fmt::format("'{}' is not a number above 0", text);
        // What is digits is for the option to read: a space may have more points than a signed number.
        if (text.find_first_not_of("0123456789") == std::string::npos) return std::string();
        const auto whole = sweep::parse_integer(text);
        if (!whole) return fmt::format("'{}' is not a whole number", text);
        text = std::to_string(*whole);
        return std::string();
      },
      "");
}

CLI::Validator no_table(std::string what) {
  return CLI::Validator(
      [what = std::move(what)](const std::string& text) {
        for (const std::string_view ending : {".csv", ".csv.gz", ".parquet"}) {
          if (text.ends_with(ending)) {
            return fmt::format("'{}' is the name of a table, and this is {}", text, what);
          }
        }
        return std::string();
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) {
        return text.empty() ? std::string("the name is empty") : std::string();
      },
      "");
}

std::optional<sweep::SweepSpec> read_or_complain(const std::filesystem::path& file) {
  auto spec = sweep::read_sweep(file, standard_library());
  if (!spec) {
    print(stderr, "{}", engine::to_text(spec.mistakes()));
    return std::nullopt;
  }
  return std::move(spec).value();
}

SpecOrRun read_spec_or_run(const std::string& name) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(name)) return {read_or_complain(name), false};
  if (fs::exists(fs::path(name) / results::kRunYaml)) {
    return {read_or_complain(fs::path(name) / results::kRunYaml), true};
  }
  print(stderr,
        "{}: error: not a run folder: it has no {}\n  hint: name a sweep, or the folder of `run -o "
        "DIR`\n",
        name, results::kRunYaml);
  return {};
}

bool within_limit_or_complain(const sweep::SweepSpec& spec, const std::string& file,
                              std::uint64_t limit) {
  const std::uint64_t most = limit > 0 ? limit : spec.limit;
  const std::uint64_t size = spec.space.size();
  if (size <= most) return true;
  print(stderr,
        "error: {} has {} positions, more than the limit of {}\n"
        "  hint: 'llmsweep check {}' says what they are; --limit {} runs them all, and\n"
        "        'limit: {}' in the spec does so every time\n",
        file, grouped(size), grouped(most), file, size, size);
  return false;
}

BuiltPoint build_or_say(const sweep::SweepSpec& spec, std::uint64_t index, const char* option) {
  const sweep::Space& space = spec.space;
  if (index >= space.size()) {
    print(stderr, "error: {} {}: the sweep has points 0 to {}\n", option, index, space.size() - 1);
    return {.exit_code = kMistake};
  }
  sweep::PointBuilder builder(space);
  BuiltPoint built{.point = sweep::Point()};
  switch (builder.build(index, *built.point)) {
    case sweep::Admission::rejected:
      print("point {} is rejected: {}\n", index,
            space.requirements()[std::size_t(builder.rejected_by())]);
      return {};
    case sweep::Admission::not_applicable:
      print(
          "point {} is left out: an axis whose 'when' is false here has only its first position\n",
          index);
      return {};
    case sweep::Admission::admitted:
      break;
  }
  return built;
}

int complain_about_run(const results::Failure& failure) {
  print(stderr, "error: {}\n  hint: 'llmsweep verify DIR' says what of a run is damaged\n",
        failure.what());
  return kMistake;
}

}  // namespace tools
