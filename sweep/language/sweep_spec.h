// A sweep as read from its file: the space, and what else the file says about running it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/resources.h"
#include "sweep/language/expectation.h"
#include "sweep/language/library.h"
#include "sweep/space/space.h"

namespace sweep {

// Without `limit:`, more points than this are taken for an accident.
constexpr std::uint64_t kDefaultLimit = 20'000'000;

struct SweepSpec {
  Space space;
  std::string name;  // the file's stem, unless it says otherwise
  std::string description;
  std::uint64_t limit = kDefaultLimit;
  // The same sweep with nothing left to look up, as YAML: reading it gives the same points at the
  // same indices, whatever the library then holds.
  std::string resolved;
  std::string digest;                     // of what decides the points: equal digests, equal spaces
  std::vector<std::string> files;         // that were read
  std::vector<Expectation> expectations;  // of the results; they decide nothing about the points
  std::vector<std::string> notes;         // on what is no mistake, and may not be what was meant
  // Traces and calibrations its scenarios name, shared by all points.
  std::shared_ptr<const engine::Resources> resources;
};

// What an axis that no point reads is taken for.
enum class InertAxes : std::uint8_t {
  refused,  // a mistake of the user's
  allowed,  // no matter: scenarios of a batch are points, and tests of the language vary whatever there is
};

// Either the sweep, or every mistake in its files. A folder `specs` beside the file is asked for
// names before the library.
engine::Result<SweepSpec> read_sweep(const std::filesystem::path& file, const Library& library);
engine::Result<SweepSpec> read_sweep_text(std::string_view text, const std::string& file_name,
                                          const Library& library,
                                          InertAxes inert = InertAxes::refused);

// What goes into run.yaml.
inline const std::string& resolved_yaml(const SweepSpec& spec) { return spec.resolved; }

// One named spec ("devices", "h100-sxm") in a scenario of its own; a model with the formats it is published in.
struct NamedSpec {
  std::string section;  // the path it fills: "device"
  engine::Scenario scenario;
};
engine::Result<NamedSpec> read_named(const Library& library, std::string_view library_name,
                                     std::string_view name);
// One line for a list: the figures of a device, model or link ("80 GB, 3.35 TB/s, 989 TFLOP/s bf16"),
// else the sentence its file opens with. Empty if there is nothing to say or the spec is not valid.
std::string summary_of(const Library& library, std::string_view library_name,
                       std::string_view name);

}  // namespace sweep
