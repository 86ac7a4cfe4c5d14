// One scenario of a suite: its spec is run, and its results are held to what the spec expects of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/tier.h"
#include "sweep/language/library.h"

namespace tools {

enum class Support : std::uint8_t {
  supported,  // every point works, every expectation holds
  partly,     // something of that does not, or nothing is expected
  none,       // there is no spec
};
constexpr std::array<std::string_view, 3> enum_names(Support) {
  return {"supported", "partly", "not"};
}

struct SuiteResult {
  std::string id;
  std::string what;
  Support support = Support::none;
  std::size_t points = 0, working = 0;
  std::vector<std::string> metrics;  // columns that are expected to be something
  std::string range;                 // of the first of them, over all points
  std::size_t checks = 0, held = 0;
  std::string trouble;            // the first thing that is wrong
  std::array<double, 3> tiers{};  // share of the kernels' time, by engine::Tier
  double seconds = 0;
};

// Runs the spec. `threads` as the runner has it.
SuiteResult run_scenario(const std::filesystem::path& spec, const sweep::Library& library,
                         int threads);

// Every scenario of a folder of specs, and those of kSuiteScenarios that have none there; only those whose id starts with
// `only`.
struct SuiteOptions {
  std::filesystem::path folder;
  bool standard = true;  // the folder is the project's own: say which scenarios are missing
  std::string only;
  int threads = 0;
};
std::vector<SuiteResult> run_suite(const SuiteOptions& options, const sweep::Library& library);

}  // namespace tools
